/// The formats of JSON Schema that are regular languages, as patterns. Each one names the RFC that defines it.
enum Formats {
    /// The pattern of a format; nil if the format is not enforced.
    static func pattern(_ name: String) -> String? { patterns[name] }

    private static let year = "(?!0000)\\d{4}"
    private static let leapYear =
        "(?:\\d\\d(?:0[48]|[2468][048]|[13579][26])|(?:0[48]|[2468][048]|[13579][26])00)"
    /// RFC 3339, full-date, with the number of days of each month.
    private static let date =
        "(?:\(year)-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\\d|30)"
        + "|02-(?:0[1-9]|1\\d|2[0-8]))|\(leapYear)-02-29)"
    /// RFC 3339, full-time, without leap seconds, which most validators reject.
    private static let time =
        "(?:[01]\\d|2[0-3]):[0-5]\\d:[0-5]\\d(?:\\.\\d+)?(?:[Zz]|[+-](?:[01]\\d|2[0-3]):[0-5]\\d)"
    private static let label = label(extra: "")
    private static func label(extra: String) -> String { "[A-Za-z0-9\(extra)](?:[A-Za-z0-9\(extra)-]{0,61}[A-Za-z0-9\(extra)])?" }
    private static let octet = "(?:25[0-5]|2[0-4]\\d|1\\d\\d|[1-9]?\\d)"
    private static let ipv4 = "\(octet)(?:\\.\(octet)){3}"
    /// RFC 4291, section 2.2.
    private static let ipv6: String = {
        let group = "[0-9A-Fa-f]{1,4}"
        let last = "(?:\(group):\(group)|\(ipv4))"
        let rows = [
            "(?:\(group):){6}\(last)", "::(?:\(group):){5}\(last)", "(?:\(group))?::(?:\(group):){4}\(last)",
            "(?:(?:\(group):){0,1}\(group))?::(?:\(group):){3}\(last)",
            "(?:(?:\(group):){0,2}\(group))?::(?:\(group):){2}\(last)",
            "(?:(?:\(group):){0,3}\(group))?::\(group):\(last)", "(?:(?:\(group):){0,4}\(group))?::\(last)",
            "(?:(?:\(group):){0,5}\(group))?::\(group)", "(?:(?:\(group):){0,6}\(group))?::",
        ]
        return "(?:" + rows.joined(separator: "|") + ")"
    }()

    /// URIs of RFC 3986 in ASCII, or IRIs of RFC 3987 if `extra` adds the characters beyond ASCII.
    private static func uri(extra: String, isReference: Bool) -> String {
        let escaped = "%[0-9A-Fa-f]{2}"
        let plain = "A-Za-z0-9._~!$&'()*+,;=\(extra)\\-"
        let segment = "(?:[\(plain):@]|\(escaped))"
        let host = "(?:\\[(?:\(ipv6)|[Vv][0-9A-Fa-f]+\\.[\(plain):]+)\\]|(?:[\(plain)]|\(escaped))*)"
        let authority = "//(?:(?:[\(plain):]|\(escaped))*@)?\(host)(?::\\d*)?"
        let path = "(?:/\(segment)*)*"
        let tail = "(?:\\?(?:\(segment)|[/?])*)?(?:#(?:\(segment)|[/?])*)?"
        let rooted = "(?:\(authority)\(path)|/(?:\(segment)+\(path))?"
        let absolute = "[A-Za-z][A-Za-z0-9+.-]*:\(rooted)|(?:\(segment)+\(path))?)"
        guard isReference else { return absolute + tail }
        let relative = "\(rooted)|(?:(?:[\(plain)@]|\(escaped))+\(path))?)"
        return "(?:\(absolute)|\(relative))\(tail)"
    }

    private static let beyondASCII = "\\u00A0-\\uD7FF\\uF900-\\uFDCF\\uFDF0-\\uFFEF\\u{10000}-\\u{EFFFD}"
    /// RFC 6570, section 2: literals, and expressions in braces.
    private static let uriTemplate: String = {
        let escaped = "%[0-9A-Fa-f]{2}"
        let literal = "[!#$&(-;=?-\\[\\]_a-z~\(beyondASCII)]"
        let character = "(?:[A-Za-z0-9_]|\(escaped))"
        let variable = "\(character)(?:\\.?\(character))*(?::[1-9]\\d{0,3}|\\*)?"
        return "(?:\(literal)|\(escaped)|\\{[+#./;?&]?\(variable)(?:,\(variable))*\\})*"
    }()
    /// Mailboxes of RFC 5321, or of RFC 6531 if `extra` adds the characters beyond ASCII.
    private static func mailbox(extra: String) -> String {
        let atom = "[A-Za-z0-9!#$%&'*+/=?^_`{|}~\(extra)-]+"
        let quoted = "\"(?:[ !#-\\[\\]-~\(extra)]|\\\\[ -~])+\""
        let label = label(extra: extra)
        return "(?:\(atom)(?:\\.\(atom))*|\(quoted))@(?:\(label)(?:\\.\(label))*|\\[(?:\(ipv4)|IPv6:\(ipv6))\\])"
    }

    private static let patterns: [String: String] = {
        var table = [
            "date": date, "time": time, "date-time": "\(date)[Tt]\(time)",
            // RFC 3339, appendix A.
            "duration": "P(?:(?:\\d+Y(?:\\d+M(?:\\d+D)?)?|\\d+M(?:\\d+D)?|\\d+D)"
                + "(?:T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S))?"
                + "|T(?:\\d+H(?:\\d+M(?:\\d+S)?)?|\\d+M(?:\\d+S)?|\\d+S)|\\d+W)",
            "uuid": "[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
            "email": mailbox(extra: ""), "idn-email": mailbox(extra: beyondASCII),
            // RFC 1123.
            "hostname": "(?=.{1,253}$)\(label)(?:\\.\(label))*",
            "ipv4": ipv4, "ipv6": ipv6,
            "uri": uri(extra: "", isReference: false), "uri-reference": uri(extra: "", isReference: true),
            "iri": uri(extra: beyondASCII, isReference: false), "iri-reference": uri(extra: beyondASCII, isReference: true),
            "uri-template": uriTemplate,
            // RFC 6901.
            "json-pointer": "(?:/(?:[^~/]|~[01])*)*",
            "relative-json-pointer": "(?:0|[1-9]\\d*)(?:#|(?:/(?:[^~/]|~[01])*)*)",
        ]
        for (name, pattern) in table { table[name] = "^(?:\(pattern))$" }
        return table
    }()
}
