import JSON
import TestSupport
import Testing

@testable import Inference

struct ChatTemplateTests {
    private func render(_ source: String, _ messages: [ChatMessage] = [], generation: Bool = false) throws -> String {
        let template = try ChatTemplate(source: source, beginningText: "<s>", endText: "</s>")
        return try template.render(messages, addGenerationPrompt: generation).map { piece in
            switch piece {
            case .template(let text), .user(let text): text
            }
        }.joined()
    }

    /// Templates with the results of Jinja 3 (with trim_blocks and lstrip_blocks).
    @Test(arguments: [
        ("{{ 1 + 2 * 3 }}", "7"), ("{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }}", "3 -4 2 3.5"),
        ("{{ 'a' ~ 1 ~ 'b' }}", "a1b"),
        ("{{ 'x' if false else 'y' }}{{ 'z' if false }}", "y"), ("{{ not true or true and false }}", "False"),
        ("{% if a is defined %}1{% elif b %}2{% else %}3{% endif %}", "3"),
        ("{% for i in range(3) %}{{ loop.index }}{% if not loop.last %},{% endif %}{% endfor %}", "1,2,3"),
        ("{% for i in [] %}x{% else %}none{% endfor %}", "none"),
        ("{% for i in range(9) if i is odd %}{{ i }}{% endfor %}", "1357"),
        (
            "{% for i in range(9) %}{% if i == 2 %}{% continue %}{% endif %}{% if i == 5 %}{% break %}{% endif %}{{ i }}{% endfor %}",
            "0134"
        ),
        ("{% set ns = namespace(n=0) %}{% for i in range(4) %}{% set ns.n = ns.n + i %}{% endfor %}{{ ns.n }}", "6"),
        ("{% set x = 1 %}{% for i in range(3) %}{% set x = 9 %}{% endfor %}{{ x }}", "1"),
        ("{% set t %}a{{ 1 }}{% endset %}{{ t }}{{ t }}", "a1a1"), ("{% set a, b = 1, 2 %}{{ b }}{{ a }}", "21"),
        ("{% macro f(x, y='d') %}[{{ x }}{{ y }}]{% endmacro %}{{ f(1) }}{{ f(2, y=3) }}", "[1d][23]"),
        ("{{ '  a ' | trim }}|{{ ' a'.strip() }}|{{ 'xay'.strip('xy') }}|{{ 'ab '.rstrip() }}", "a|a|a|ab"),
        ("{{ 'aXbXc'.split('X') | join('-') }} {{ 'a b  c'.split() | length }}", "a-b-c 3"),
        ("{{ 'hello' | upper }} {{ 'HI' | lower }} {{ 'ab cd' | title }} {{ 'abC' | capitalize }}", "HELLO hi Ab Cd Abc"),
        ("{{ [3,1,2] | sort | join }} {{ [1,2,2] | unique | list }} {{ [1,2] | first }} {{ [1,2] | last }}", "123 [1, 2] 1 2"),
        ("{{ {'a': 1, 'b': [true, none, 'x\"y']} | tojson }}", #"{"a": 1, "b": [true, null, "x\"y"]}"#),
        ("{{ {'a': [1]} | tojson(indent=2) }}", "{\n  \"a\": [\n    1\n  ]\n}"),
        ("{% for k, v in {'a': 1, 'b': 2}.items() %}{{ k }}={{ v }};{% endfor %}", "a=1;b=2;"),
        ("{{ undefined_thing | default('d') }} {{ '' | default('e', true) }} {{ none is none }}", "d e True"),
        ("{{ [1,2,3,4][1:3] }} {{ [1,2,3][::-1] }} {{ 'abc'[-1] }} {{ 'abcd'[1:] }}", "[2, 3] [3, 2, 1] c bcd"),
        ("{{ 2 in [1,2] }} {{ 'b' not in 'abc' }} {{ 'k' in {'k': 1} }}", "True False True"),
        ("{{ [{'r':'a'},{'r':'b'}] | selectattr('r', 'equalto', 'b') | map(attribute='r') | list }}", "['b']"),
        ("a\n  {% if true %}\n  b\n  {% endif %}\nc", "a\n  b\nc"), ("a  {%- if true -%}  b  {%- endif -%}  c", "abc"),
        ("a {# comment #} b {{- 1 }}", "a  b1"), ("{% raw %}{{ x }}{% endraw %}", "{{ x }}"),
        ("{{ 'a' 'b' }} {{ \"it's\" }} {{ 'n\\nl' }}", "ab it's n\nl"), ("{{ bos_token }}{{ eos_token }}", "<s></s>"),
        ("{{ '%s' }}{{ 'abc'.replace('b', 'x') }}{{ 'abc'.startswith('ab') }}", "%saxcTrue"),
        ("{% generation %}x{% endgeneration %}", "x"), ("{{ strftime_now('%Y') | length }}", "4"),
        ("{{ messages[0].role is undefined }}", ""),
    ])
    func language(source: String, expected: String) throws {
        if source.contains("messages[0]") {
            #expect(throws: TemplateError.self) { try render(source) }
        } else {
            #expect(try render(source) == expected)
        }
    }

    @Test func objectsWithManyMembers() {
        let members = (0..<20_000).map { ("member\($0)", TemplateValue.int($0)) }
        let ratio = Linearity.ratio(2_500, minimum: .zero) { count in
            var dictionary = TemplateDictionary(Array(members.prefix(count)))
            for (key, value) in members.prefix(count) { dictionary[key] = value }
            #expect(dictionary.pairs.count == count)
        }
        #expect(ratio < Linearity.limit)
        var dictionary = TemplateDictionary((0..<20).map { ("k\($0)", .int($0)) })
        dictionary["k3"] = nil
        dictionary["k3"] = .int(33)
        #expect(dictionary.pairs.map(\.key).suffix(2) == ["k19", "k3"] && dictionary.pairs.count == 20)
    }

    static let conversation = [
        ChatMessage(role: .system, content: "Be brief."), ChatMessage(role: .user, content: " Hi! "),
        ChatMessage(role: .assistant, content: "Hello."), ChatMessage(role: .user, content: "Bye"),
    ]

    @Test func llama3() throws {
        let source = """
            {% set loop_messages = messages %}{% for message in loop_messages %}{% set content = '<|start_header_id|>' + \
            message['role'] + '<|end_header_id|>\n\n'+ message['content'] | trim + '<|eot_id|>' %}{% if loop.index0 == 0 %}\
            {% set content = bos_token + content %}{% endif %}{{ content }}{% endfor %}{% if add_generation_prompt %}\
            {{ '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{% endif %}
            """
        #expect(
            try render(source, Self.conversation, generation: true)
                == "<s><|start_header_id|>system<|end_header_id|>\n\nBe brief.<|eot_id|><|start_header_id|>user<|end_header_id|>\n\nHi!"
                + "<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\nHello.<|eot_id|><|start_header_id|>user<|end_header_id|>"
                + "\n\nBye<|eot_id|><|start_header_id|>assistant<|end_header_id|>\n\n")
    }

    @Test func mistral() throws {
        let source = """
            {{ bos_token }}{% for message in messages if message['role'] != 'system' %}{% if (message['role'] == 'user') != \
            (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}{% if message['role'] == 'user' %}\
            {{ '[INST] ' + message['content'] + ' [/INST]' }}{% else %}{{ message['content'] + eos_token }}{% endif %}{% endfor %}
            """
        // The template leaves instructions out, which become the beginning of the first prompt.
        #expect(try render(source, Self.conversation) == "<s>[INST] Be brief.\n\n Hi!  [/INST]Hello.</s>[INST] Bye [/INST]")
        #expect(throws: TemplateError.raised("roles must alternate")) {
            try render(source, [ChatMessage(role: .assistant, content: "x")])
        }
    }

    private static let alternating = """
        {% for message in messages %}{% if message.role == 'system' %}{{ raise_exception('no system') }}{% endif %}\
        {% if (message.role == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('roles must alternate') }}{% endif %}\
        [{{ message.role }}] {{ message.content | trim }}
        {% endfor %}{% if add_generation_prompt %}[assistant]{% endif %}
        """

    /// Templates without the role `system`, or that demand alternating roles: instructions become the beginning of the prompt that
    /// follows, and prompts without a response between them are joined, at each length of a conversation.
    @Test func rolesThatATemplateDoesNotKnow() throws {
        let prompts = [
            ChatMessage(role: .system, content: "Be brief."), ChatMessage(role: .user, content: "One"),
            ChatMessage(role: .user, content: "Two"), ChatMessage(role: .assistant, content: "Three"),
            ChatMessage(role: .user, content: "Four"),
        ]
        let texts = try (1...5).map { try render(Self.alternating, Array(prompts.prefix($0))) }
        #expect(texts[0] == "[user] Be brief.\n")
        #expect(texts[1] == "[user] Be brief.\n\nOne\n")
        #expect(texts[2] == "[user] Be brief.\n\nOne\n\nTwo\n")
        #expect(texts[4] == texts[2] + "[assistant] Three\n[user] Four\n")
        // What cannot be rendered in other roles is an error.
        #expect(throws: TemplateError.raised("roles must alternate")) {
            try render(Self.alternating, [ChatMessage(role: .assistant, content: "x")])
        }
        // Templates that know the roles get them as they are, and those that only demand an order get the instructions.
        let all = "{% for m in messages %}[{{ m.role }}] {{ m.content }}{% endfor %}"
        #expect(try render(all, prompts) == "[system] Be brief.[user] One[user] Two[assistant] Three[user] Four")
        let ordered = """
            {% set before = namespace(role='') %}{% for m in messages %}{% if m.role == before.role %}{{ raise_exception('twice') }}\
            {% endif %}{% set before.role = m.role %}[{{ m.role }}] {{ m.content }}{% endfor %}
            """
        #expect(try render(ordered, prompts) == "[system] Be brief.[user] One\n\nTwo[assistant] Three[user] Four")
    }

    /// Text of a message remains marked as user text in every operation.
    @Test(arguments: [
        "{{ messages[0].content }}", "{{ messages[0].content | trim }}", "{{ messages[0]['content'].replace('a', '') }}",
        "{{ messages[0].content.split('Q') | join('') }}", "{{ messages[0].content[0:] }}",
        "{% set x = messages[0].content %}{{ x }}",
        "{{ messages | tojson }}", "{{ '' ~ messages[0].content }}",
        "{% macro f(m) %}{{ m.content }}{% endmacro %}{{ f(messages[0]) }}",
        "{{ messages | map(attribute='content') | join }}", "{{ messages[0].content | indent }}",
        "{{ messages[0].content | reverse | reverse }}",
    ])
    func userTextStaysUserText(source: String) throws {
        let template = try ChatTemplate(source: "<|im_start|>" + source, beginningText: "", endText: "")
        let pieces = try template.render([ChatMessage(role: .user, content: "x<|im_end|>y")], addGenerationPrompt: false)
        for case .template(let text) in pieces { #expect(!text.contains("im_end")) }
        #expect(pieces.contains { if case .user(let text) = $0 { text.contains("<|im_end|>") } else { false } })
    }

    /// Keys of objects and identifiers of calls are text of a conversation too, also where a list or an object is printed.
    @Test(arguments: [
        "{{ call.function.arguments | tojson }}", "{{ call.function.arguments }}", "{{ messages[0].tool_calls | string }}",
        "{{ 'x' ~ call.function.arguments }}", "{% for key in call.function.arguments %}{{ key }}{% endfor %}",
        "{% for key, value in call.function.arguments.items() %}{{ key }}{% endfor %}",
        "{{ call.function.arguments.keys() | join(', ') }}", "{{ call.function.arguments | list | first }}",
        "{{ (call.function.arguments | dictsort | first)[0] }}", "{{ (call.function.arguments | items | list)[0] }}",
        "{{ [messages[0].content] }}", "{{ call.id }}", "{{ messages[1].tool_call_id }}", "{{ {call.id: 1} | tojson }}",
        "{{ {'id-' ~ call.id: 1} }}",
    ])
    func keysAndIdentifiersStayUserText(source: String) throws {
        var message = ChatMessage(role: .assistant, content: "<|im_end|>")
        message.toolCalls = [
            ChatToolCall(id: "<|im_end|>", name: "f", arguments: .object([JSONValue.Member("<|im_end|>", .string("x"))]))
        ]
        var output = ChatMessage(role: .tool, content: "y")
        output.toolCallID = "<|im_end|>"
        let template = try ChatTemplate(
            source: "<|im_start|>{% set call = messages[0].tool_calls[0] %}" + source, beginningText: "", endText: "")
        let pieces = try template.render([message, output], addGenerationPrompt: false)
        for case .template(let text) in pieces { #expect(!text.contains("im_end")) }
        #expect(pieces.contains { if case .user(let text) = $0 { text.contains("<|im_end|>") } else { false } })
        #expect(pieces.contains { if case .template(let text) = $0 { text.contains("<|im_start|>") } else { false } })
    }

    /// The template's own keys are its own text.
    @Test func keysOfTheTemplateStayItsText() throws {
        let source = "{{ {'<|im_end|>': 1} }}{{ {'<|im_end|>': 1} | tojson }}{{ {1: [2, {}]} }}{{ [[], {}] | tojson(indent=1) }}"
        let template = try ChatTemplate(source: source, beginningText: "", endText: "")
        #expect(
            try template.render([ChatMessage(role: .user, content: "x")], addGenerationPrompt: false)
                == [.template("{'<|im_end|>': 1}{\"<|im_end|>\": 1}{1: [2, {}]}[\n [],\n {}\n]")])
    }

    @Test(arguments: [
        "{% if %}", "{% for x in %}{% endfor %}", "{{ 1 +", "{% if true %}", "{% unknown %}",
        "{{ x is notest }}",
        "{{ 'open }}", "{# open", "{% raw %}", "{{ [1, }}", "{{ ) }}", "{{ 1 ? 2 }}", "{% set %}", "{% endfor %}",
        "{{ " + String(repeating: "(", count: 500) + "1" + String(repeating: ")", count: 500) + " }}",
        String(repeating: "{% if true %}", count: 300) + String(repeating: "{% endif %}", count: 300),
        "{% raw %}" + String(repeating: "{% ( ", count: 50_000),
        "{{ (" + chains("1", 199) + ") + (" + chains("2", 199) + ") }}",
    ])
    func malformedTemplatesAreTypedErrors(source: String) throws {
        #expect(throws: TemplateError.self) { try ChatTemplate(source: source, beginningText: "", endText: "") }
    }

    /// Chains of all operators, which become a tree of 7 × `count` levels.
    private static func chains(_ start: String, _ count: Int) -> String {
        let links = ["|d", "*1", "~1", "-1", "==1", " and 1", " or 1"]
        return start + links.map { String(repeating: $0, count: count) }.joined()
    }

    /// The beginning of a loop over an object `d` with 20,000 members.
    private static let many =
        "{% set x %}{ {% for i in range(20000) %}\"{{ i }}\":0,{% endfor %}\"x\":0}{% endset %}{% set d = x | from_json %}"
        + "{% for i in range(200) %}"

    /// Each of these would take gigabytes or hours, or the whole stack.
    @Test(arguments: [
        "{% for i in range(100000) %}{% for j in range(9) %}" + String(repeating: "A", count: 200_000)
            + "{% endfor %}{% endfor %}",
        "{% set x %}{% for i in range(100000) %}" + String(repeating: "A", count: 2_000) + "{% endfor %}{% endset %}",
        "{% macro m(x) %}{{ (" + chains("x", 150) + ") }}{{ m(x) }}{% endmacro %}{{ m(1) }}",
        "{% macro m(x) %}{% if (((((((((x|d|d|d|d|d|d|d|d) + m(x)))))))) %}{% endif %}{% endmacro %}{{ m(1) }}",
        "{% set s = 'a' * 16000000 %}{% for i in range(100000) %}{% set x = s[0] %}{% endfor %}",
        "{% set s = 'a' * 16000000 %}{% for i in range(100000) %}{% if 'b' in s %}{% endif %}{% endfor %}",
        "{% set s = 'a' * 16000000 %}{% for i in range(100000) %}{% if s == s ~ 'b' %}{% endif %}{% endfor %}",
        "{% set s = 'a' * 16000000 %}{% for c in s %}{% endfor %}", "{{ ('a' * 16000000) | list | length }}",
        "{% set s = 'a' * 16000000 %}{% for i in range(100000) %}{{ s.startswith('b') }}{% endfor %}",
        "{% set l = range(100000) %}{% for i in range(100000) %}{% if l == l %}{% endif %}{% endfor %}",
        "{% set l = range(100000) %}{% for i in range(100000) %}{% if 'x' in l %}{% endif %}{% endfor %}",
        // A string is a list of itself, so that each argument is another level.
        "{{ 'a' | map(" + String(repeating: "'map', ", count: 2_000) + "'upper') }}",
        "{{ ('a,' * 250000).split(',') | length }}", "{{ ('a ' * 250000).split() | length }}",
        "{{ ('a' * 1500000) | replace('a', 'b') | length }}", "{{ ('\\n' * 2100000) | indent | length }}",
        "{{ ('a' * 300000) | list | length }}", "{% set x %}[0{{ ',0' * 600000 }}]{% endset %}{{ x | from_json | length }}",
        "{% set s = 'a' * 4000000 %}{% set l = [s] %}{% set t = ('a' * 3999999) ~ 'b' %}{% for i in range(100000) %}"
            + "{{ l | select('equalto', t) | first }}{% endfor %}",
        "{% set d = {'a' * 8000000: 1} %}{{ [d, d, d, d, d, d, d, d] | length }}",
        "{% set l = range(50000) %}{% for i in range(100) %}{{ l | select | first }}{% endfor %}",
        "{% set l = range(50000) %}{% for i in range(100) %}{{ l | reject | first }}{% endfor %}",
        many + "{{ d.items() | first }}{% endfor %}", many + "{{ d.keys() | first }}{% endfor %}",
        many + "{{ d.values() | first }}{% endfor %}", many + "{{ d | items | first }}{% endfor %}",
        many + "{{ d | list | first }}{% endfor %}",
    ])
    func costlyTemplatesEnd(source: String) throws {
        #expect(throws: TemplateError.self) { try render(source) }
    }

    /// Namespaces in chains and in circles are released one after the other.
    @Test func linkedNamespaces() throws {
        #expect(
            try render(
                "{% set ns = namespace(a=none) %}{% for i in range(99999) %}{% set ns.a = namespace(a=ns.a) %}{% endfor %}end")
                == "end"
        )
        #expect(try render("{% set ns = namespace(a=1) %}{% set ns.b = ns %}{{ ns.b.b.a }}") == "1")
    }

    /// A search for a long text in a long text takes as many steps as both have characters.
    @Test func searchesAreLinear() throws {
        #expect(
            try render(
                "{% set s = 'a' * 300000 %}{{ (s ~ s).split(s ~ 'b') | length }} {{ (s ~ 'b') in (s ~ s) }} "
                    + "{{ (s ~ s).find(s ~ 'b') }} {{ (s ~ 'b' ~ s).find('ab') }}") == "1 False -1 299999")
        #expect(
            try render("{{ 'aabaab'.split('aab') }} {{ 'xaaxa'.replace('aa', '-') }} {{ 'ab' in 'aab' }}")
                == "['', '', ''] x-xa True")
    }

    /// A text of two pieces is compared with the texts of a list by length first.
    @Test func longTextInAList() throws {
        let user = [ChatMessage(role: .user, content: "b")]
        let list = "('a,' * 90000).split(',')"
        #expect(try render("{% set x = ('a' * 4000000) ~ messages[0].content %}{{ x in \(list) }}", user) == "False")
        #expect(
            try render(
                "{{ 'a' ~ messages[0].content == 'ab' }} {{ messages[0].content ~ 'a' == 'ab' }} {{ 'ab' in ['b', 'ab'] }}", user)
                == "True False True")
        // The first member of an object that has many costs no more than that of a small one.
        #expect(try render(Self.many + "{% set k = d | first %}{% endfor %}{{ d | last }}{{ d.get('7') }}") == "x0")
    }

    /// The entries of `loop`, which are made for each iteration, need no index.
    @Test func loopHasFewEntries() throws {
        let count = try #require(Int(render("{% for x in [1] %}{{ loop | length }}{% endfor %}")))
        #expect(count == 9 && count <= TemplateDictionary.maximumUnindexed)
    }

    /// Parts of long conversations with calls, which templates take for each message, cost no more than their length.
    @Test func partsOfLongConversations() throws {
        var call = ChatMessage(role: .assistant, content: "")
        call.toolCalls = [ChatToolCall(id: "1", name: "f", arguments: .object([JSONValue.Member("a", .array([.null, .null]))]))]
        let messages = (0..<1_500).map { $0 % 2 == 0 ? ChatMessage(role: .user, content: "x") : call }
        let text = try render(
            "{% for m in messages %}{% set rest = messages[loop.index0:] %}{{ rest[0].role[0] }}{% endfor %}"
                + "{{ messages[::-1] | selectattr('role', 'equalto', 'user') | list | length }}", messages)
        #expect(text == String(repeating: "ua", count: 750) + "750")
    }

    /// Positions of long conversations, which real templates use for each message, cost no more in a longer one.
    @Test func longConversations() throws {
        let messages = (0..<20_000).map { ChatMessage(role: $0 % 2 == 0 ? .user : .assistant, content: "Message \($0).") }
        let text = try render(
            """
            {% for m in messages %}{% if loop.index < messages|length and messages[loop.index0].content == m.content %}\
            {% if (messages|last).role == 'assistant' %}{{ m.role }}: {{ m.content|trim }}
            {% endif %}{% endif %}{% endfor %}
            """, messages)
        #expect(text.split(separator: "\n").count == 19_999)
    }

    @Test func elementsOfStrings() throws {
        #expect(
            try render("{{ 'äbc'[0] }}{{ 'abc'[-1] }}{{ 'abc'[3] }}{{ 'abc'|first }}{{ 'abc'|last }}{{ ''|first }}") == "äcac")
        #expect(try render("{% raw %}{% if {{ x {%- endraw -%}  !") == "{% if {{ x!")
    }

    @Test(arguments: [
        "{% for i in range(100000) %}{% for j in range(100000) %}{% endfor %}{% endfor %}", "{{ range(10000000000) }}",
        "{% macro f() %}{{ f() }}{% endmacro %}{{ f() }}", "{{ 1 / none }}", "{{ 1 // 0 }}", "{{ 9223372036854775807 + 1 }}",
        "{{ x.y }}",
        "{{ [1][::0] }}", "{{ raise_exception('no') }}", "{{ 'a'.nomethod() }}", "{{ 1() }}",
        "{{ 1 | nofilter }}",
    ])
    func hostileTemplatesEnd(source: String) throws {
        #expect(throws: TemplateError.self) { try render(source) }
    }
}
