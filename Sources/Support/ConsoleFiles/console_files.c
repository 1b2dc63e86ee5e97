#include "console_files.h"

#pragma clang diagnostic ignored "-Wc23-extensions"
static const unsigned char api_js[] = {
#embed "web/api.js"
};
static const unsigned char code_dialog_js[] = {
#embed "web/code-dialog.js"
};
static const unsigned char composer_js[] = {
#embed "web/composer.js"
};
static const unsigned char decide_js[] = {
#embed "web/decide.js"
};
static const unsigned char dom_js[] = {
#embed "web/dom.js"
};
static const unsigned char engine_js[] = {
#embed "web/engine.js"
};
static const unsigned char index_html[] = {
#embed "web/index.html"
};
static const unsigned char json_reader_js[] = {
#embed "web/json-reader.js"
};
static const unsigned char json_view_js[] = {
#embed "web/json-view.js"
};
static const unsigned char library_js[] = {
#embed "web/library.js"
};
static const unsigned char main_js[] = {
#embed "web/main.js"
};
static const unsigned char markdown_blocks_js[] = {
#embed "web/markdown-blocks.js"
};
static const unsigned char markdown_inline_js[] = {
#embed "web/markdown-inline.js"
};
static const unsigned char markdown_js[] = {
#embed "web/markdown.js"
};
static const unsigned char message_js[] = {
#embed "web/message.js"
};
static const unsigned char schema_panel_js[] = {
#embed "web/schema-panel.js"
};
static const unsigned char schema_samples_js[] = {
#embed "web/schema-samples.js"
};
static const unsigned char settings_panel_js[] = {
#embed "web/settings-panel.js"
};
static const unsigned char settings_js[] = {
#embed "web/settings.js"
};
static const unsigned char sidebar_js[] = {
#embed "web/sidebar.js"
};
static const unsigned char style_css[] = {
#embed "web/style.css"
};
static const unsigned char tabs_js[] = {
#embed "web/tabs.js"
};
static const unsigned char thread_js[] = {
#embed "web/thread.js"
};
static const unsigned char tokens_view_js[] = {
#embed "web/tokens-view.js"
};
static const unsigned char tool_card_js[] = {
#embed "web/tool-card.js"
};
static const unsigned char tools_panel_js[] = {
#embed "web/tools-panel.js"
};
static const unsigned char tree_js[] = {
#embed "web/tree.js"
};
static const unsigned char welcome_js[] = {
#embed "web/welcome.js"
};
static const unsigned char window_panel_js[] = {
#embed "web/window-panel.js"
};

static const struct console_file files[] = {
    {"api.js", api_js, sizeof api_js},
    {"code-dialog.js", code_dialog_js, sizeof code_dialog_js},
    {"composer.js", composer_js, sizeof composer_js},
    {"decide.js", decide_js, sizeof decide_js},
    {"dom.js", dom_js, sizeof dom_js},
    {"engine.js", engine_js, sizeof engine_js},
    {"index.html", index_html, sizeof index_html},
    {"json-reader.js", json_reader_js, sizeof json_reader_js},
    {"json-view.js", json_view_js, sizeof json_view_js},
    {"library.js", library_js, sizeof library_js},
    {"main.js", main_js, sizeof main_js},
    {"markdown-blocks.js", markdown_blocks_js, sizeof markdown_blocks_js},
    {"markdown-inline.js", markdown_inline_js, sizeof markdown_inline_js},
    {"markdown.js", markdown_js, sizeof markdown_js},
    {"message.js", message_js, sizeof message_js},
    {"schema-panel.js", schema_panel_js, sizeof schema_panel_js},
    {"schema-samples.js", schema_samples_js, sizeof schema_samples_js},
    {"settings-panel.js", settings_panel_js, sizeof settings_panel_js},
    {"settings.js", settings_js, sizeof settings_js},
    {"sidebar.js", sidebar_js, sizeof sidebar_js},
    {"style.css", style_css, sizeof style_css},
    {"tabs.js", tabs_js, sizeof tabs_js},
    {"thread.js", thread_js, sizeof thread_js},
    {"tokens-view.js", tokens_view_js, sizeof tokens_view_js},
    {"tool-card.js", tool_card_js, sizeof tool_card_js},
    {"tools-panel.js", tools_panel_js, sizeof tools_panel_js},
    {"tree.js", tree_js, sizeof tree_js},
    {"welcome.js", welcome_js, sizeof welcome_js},
    {"window-panel.js", window_panel_js, sizeof window_panel_js},
};

const struct console_file *console_files(size_t *count) {
    *count = sizeof files / sizeof *files;
    return files;
}
