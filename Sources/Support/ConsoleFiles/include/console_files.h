// The pages of the web console: part of the server's program, so that nothing else has to be installed.
#ifndef CONSOLE_FILES_H
#define CONSOLE_FILES_H

#include <stddef.h>

struct console_file {
    const char *name;
    const unsigned char *bytes;
    size_t count;
};

/// All files, in the order of their names.
const struct console_file *console_files(size_t *count);

#endif
