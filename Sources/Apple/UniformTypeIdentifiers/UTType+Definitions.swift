/// The types of the system.
extension UTType {
    /// What is known about a type.
    struct Definition: Sendable {
        let identifier: String
        /// The types that it is directly a kind of.
        let parents: [String]
        /// The tags of each class, the preferred one first.
        let tags: [UTTagClass: [String]]
        /// Its name in English.
        let description: String?

        /// - Parameters:
        ///   - parents: Identifiers, separated by spaces.
        ///   - extensions: Extensions of file names without their points, separated by spaces.
        ///   - mimeTypes: MIME types in lowercase letters, separated by spaces.
        init(
            _ identifier: String, _ parents: String = "", extensions: String = "", mimeTypes: String = "",
            description: String? = nil
        ) {
            func list(_ text: String) -> [String] { text.split(separator: " ").map(String.init) }
            self.identifier = identifier
            self.parents = list(parents)
            let tags = [UTTagClass.filenameExtension: list(extensions), .mimeType: list(mimeTypes)]
            self.tags = tags.filter { !$0.value.isEmpty }
            self.description = description
        }

        /// A type of a program.
        init(_ identifier: String, parents: [String], tags: [UTTagClass: [String]] = [:]) {
            (self.identifier, self.parents, self.tags, description) = (identifier, parents, tags, nil)
        }
    }

    /// The types with a property, then others that they conform to or that files often have. Of the types with the same tag, the first
    /// is the one that a tag alone means.
    static let definitions: [Definition] = [
        Definition("public.item", description: "item"),
        Definition("public.content", description: "content"),
        Definition("public.composite-content", "public.content", description: "content"),
        Definition("public.disk-image", "public.archive", description: "disk image"),
        Definition("public.data", "public.item", mimeTypes: "application/octet-stream", description: "data"),
        Definition("public.directory", "public.item", description: "directory"),
        Definition("com.apple.resolvable", description: "resolvable"),
        Definition("public.symlink", "public.item com.apple.resolvable", description: "symbolic link"),
        Definition("public.executable", "public.item", description: "executable"),
        Definition("com.apple.mount-point", "public.item com.apple.resolvable", description: "mount point"),
        Definition("com.apple.alias-file", "public.data com.apple.resolvable", description: "alias"),
        Definition("com.apple.bookmark", "public.data com.apple.resolvable", description: "bookmark"),
        Definition("public.url", "public.data", description: "URL"),
        Definition("public.file-url", "public.url", description: "file URL"),
        Definition("public.text", "public.data public.content", description: "text"),
        Definition("public.plain-text", "public.text", extensions: "txt text", mimeTypes: "text/plain"),
        Definition("public.utf8-plain-text", "public.plain-text", mimeTypes: "text/plain;charset=utf-8"),
        Definition("public.utf16-external-plain-text", "public.plain-text"),
        Definition("public.utf16-plain-text", "public.plain-text", mimeTypes: "text/plain;charset=utf-16"),
        Definition("public.delimited-values-text", "public.text", description: "delimited text values"),
        Definition(
            "public.comma-separated-values-text", "public.plain-text public.delimited-values-text", extensions: "csv",
            mimeTypes: "text/csv text/comma-separated-values", description: "comma-separated values"),
        Definition(
            "public.tab-separated-values-text", "public.plain-text public.delimited-values-text", extensions: "tsv",
            mimeTypes: "text/tab-separated-values", description: "tab-separated values"),
        Definition("public.utf8-tab-separated-values-text", "public.tab-separated-values-text public.utf8-plain-text"),
        Definition("public.rtf", "public.text", extensions: "rtf", mimeTypes: "text/rtf", description: "rich text (RTF)"),
        Definition(
            "public.html", "public.text", extensions: "html htm shtml shtm", mimeTypes: "text/html", description: "HTML text"),
        Definition(
            "public.xml", "public.text", extensions: "xml", mimeTypes: "application/xml text/xml", description: "XML text"),
        Definition("public.yaml", "public.text", extensions: "yml yaml", mimeTypes: "application/x-yaml", description: "YAML"),
        Definition("public.css", "public.text", extensions: "css", mimeTypes: "text/css", description: "CSS"),
        Definition("public.source-code", "public.plain-text", description: "source code"),
        Definition("public.assembly-source", "public.source-code", extensions: "s", description: "assembly source code"),
        Definition("public.c-source", "public.source-code", extensions: "c", description: "C source code"),
        Definition("public.objective-c-source", "public.source-code", extensions: "m", description: "Objective-C source code"),
        Definition("public.swift-source", "public.source-code", extensions: "swift", description: "Swift source code"),
        Definition(
            "public.c-plus-plus-source", "public.source-code", extensions: "cp cpp c++ cc cxx", description: "C++ source code"),
        Definition(
            "public.objective-c-plus-plus-source", "public.source-code", extensions: "mm",
            description: "Objective-C++ source code"),
        Definition("public.c-header", "public.source-code", extensions: "h", description: "C header code"),
        Definition(
            "public.c-plus-plus-header", "public.source-code", extensions: "hh hp hpp hxx h++ ipp", description: "C++ header code"
        ),
        Definition("public.script", "public.source-code", description: "script"),
        Definition("com.apple.applescript.text", "public.script", extensions: "applescript", description: "AppleScript text"),
        Definition("com.apple.applescript.script", "public.data public.script", extensions: "scpt", description: "AppleScript"),
        Definition(
            "com.apple.applescript.script-bundle", "com.apple.bundle com.apple.package public.script", extensions: "scptd",
            description: "script bundle"),
        Definition(
            "com.netscape.javascript-source", "public.script public.executable", extensions: "js jscript javascript mjs",
            mimeTypes: "text/javascript", description: "JavaScript"),
        Definition("public.shell-script", "public.script", extensions: "sh", description: "shell script"),
        Definition(
            "public.perl-script", "public.shell-script", extensions: "pl pm", mimeTypes: "text/x-perl-script",
            description: "Perl script"),
        Definition(
            "public.python-script", "public.shell-script", extensions: "py", mimeTypes: "text/x-python-script",
            description: "Python script"),
        Definition(
            "public.ruby-script", "public.shell-script", extensions: "rb rbw", mimeTypes: "text/x-ruby-script",
            description: "Ruby script"),
        Definition(
            "public.php-script", "public.shell-script", extensions: "php php3 php4 ph3 ph4 phtml",
            mimeTypes: "text/php text/x-php-script application/php", description: "PHP script"),
        Definition("public.make-source", "public.script", extensions: "make mak gmk mk", description: "makefile"),
        Definition("public.json", "public.text", extensions: "json", mimeTypes: "application/json", description: "JSON"),
        Definition("com.apple.property-list", "public.data", extensions: "plist", description: "property list"),
        Definition(
            "com.apple.xml-property-list", "public.xml com.apple.property-list", extensions: "plist",
            description: "XML property list"),
        Definition(
            "com.apple.binary-property-list", "com.apple.property-list", extensions: "plist", description: "binary property list"),
        Definition(
            "com.adobe.pdf", "public.data public.composite-content", extensions: "pdf", mimeTypes: "application/pdf",
            description: "PDF document"),
        Definition(
            "com.apple.rtfd", "com.apple.package public.composite-content", extensions: "rtfd",
            description: "rich text with attachments (RTFD)"),
        Definition(
            "com.apple.flat-rtfd", "public.data public.composite-content", description: "rich text with attachments (RTFD) data"),
        Definition(
            "com.apple.webarchive", "public.data public.composite-content", extensions: "webarchive",
            mimeTypes: "application/x-webarchive", description: "web archive"),
        Definition("public.image", "public.data public.content", description: "image"),
        Definition(
            "public.jpeg", "public.image", extensions: "jpeg jpg jpe", mimeTypes: "image/jpeg image/jpg",
            description: "JPEG image"),
        Definition("public.tiff", "public.image", extensions: "tiff tif", mimeTypes: "image/tiff", description: "TIFF image"),
        Definition("com.compuserve.gif", "public.image", extensions: "gif", mimeTypes: "image/gif", description: "GIF image"),
        Definition("public.png", "public.image", extensions: "png", mimeTypes: "image/png", description: "PNG image"),
        Definition("com.apple.icns", "public.image", extensions: "icns", description: "Apple icon image"),
        Definition(
            "com.microsoft.bmp", "public.image", extensions: "bmp dib", mimeTypes: "image/bmp",
            description: "Windows bitmap image"),
        Definition(
            "com.microsoft.ico", "public.image", extensions: "ico", mimeTypes: "image/vnd.microsoft.icon image/x-icon",
            description: "Windows icon image"),
        Definition("public.camera-raw-image", "public.image", description: "camera raw image"),
        Definition(
            "public.svg-image", "public.image public.xml", extensions: "svg svgz", mimeTypes: "image/svg+xml",
            description: "SVG image"),
        Definition("com.apple.live-photo", description: "Live Photo"),
        Definition(
            "public.heif", "public.heif-standard", extensions: "heif hif", mimeTypes: "image/heif", description: "HEIF image"),
        Definition("public.heic", "public.heif-standard", extensions: "heic", mimeTypes: "image/heic", description: "HEIC image"),
        Definition(
            "public.heics", "public.heif-standard", extensions: "heics", mimeTypes: "image/heic-sequence",
            description: "HEIC image sequence"),
        Definition(
            "org.webmproject.webp", "public.image", extensions: "webp", mimeTypes: "image/webp", description: "WebP image"),
        Definition("com.ilm.openexr-image", "public.image", extensions: "exr", description: "OpenEXR image"),
        Definition(
            "com.adobe.raw-image", "public.camera-raw-image", extensions: "dng", mimeTypes: "image/x-adobe-dng",
            description: "Adobe raw image"),
        Definition("public.jpeg-xl", "public.image", extensions: "jxl", mimeTypes: "image/jxl", description: "JPEG XL image"),
        Definition("public.3d-content", "public.content", description: "3D content"),
        Definition(
            "com.pixar.universal-scene-description", "public.3d-content public.data", extensions: "usd usda usdc",
            description: "Universal Scene Description"),
        Definition(
            "com.pixar.universal-scene-description-mobile", "public.3d-content public.data", extensions: "usdz",
            mimeTypes: "model/vnd.usdz+zip", description: "Universal Scene Description package"),
        Definition(
            "com.apple.reality", "public.data", extensions: "reality", mimeTypes: "model/vnd.reality", description: "reality file"
        ),
        Definition(
            "com.apple.scenekit.scene", "public.3d-content public.data", extensions: "scn scnz", description: "SceneKit scene"),
        Definition("com.apple.arobject", "public.data", extensions: "arobject", description: "AR reference object"),
        Definition("public.audiovisual-content", "public.data public.content", description: "audiovisual content"),
        Definition("public.movie", "public.audiovisual-content", description: "movie"),
        Definition("public.video", "public.movie", description: "video"),
        Definition("public.audio", "public.audiovisual-content", description: "audio"),
        Definition(
            "com.apple.quicktime-movie", "public.movie", extensions: "mov qt", mimeTypes: "video/quicktime",
            description: "QuickTime movie"),
        Definition(
            "public.mpeg", "public.movie", extensions: "mpg mpeg mpe m75 m15",
            mimeTypes: "video/mpeg video/mpg video/x-mpeg video/x-mpg", description: "MPEG movie"),
        Definition(
            "public.mpeg-2-video", "public.video", extensions: "m2v", mimeTypes: "video/mpeg2 video/mpeg2-video",
            description: "MPEG-2 video"),
        Definition("public.mpeg-2-transport-stream", "public.movie", extensions: "ts", description: "MPEG-2 transport stream"),
        Definition(
            "public.mp3", "public.audio", extensions: "mp3 mpga",
            mimeTypes: "audio/mpeg audio/mpeg3 audio/mpg audio/mp3 audio/x-mpeg audio/x-mpeg3 audio/x-mpg audio/x-mp3",
            description: "MP3 audio"),
        Definition(
            "public.mpeg-4", "public.movie", extensions: "mp4 mpg4", mimeTypes: "video/mp4 video/mp4v-es",
            description: "MPEG-4 movie"),
        Definition(
            "public.mpeg-4-audio", "public.mpeg-4 public.audio", extensions: "mp4 mpg4", mimeTypes: "audio/mp4 audio/mp4a-latm",
            description: "MPEG-4 audio"),
        Definition("com.apple.protected-mpeg-4-audio", "public.audio", extensions: "m4p", description: "protected MPEG-4 audio"),
        Definition("com.apple.protected-mpeg-4-video", "com.apple.m4v-video", description: "protected MPEG-4 movie"),
        Definition(
            "public.avi", "public.movie", extensions: "avi vfw", mimeTypes: "video/avi video/msvideo video/x-msvideo",
            description: "AVI movie"),
        Definition(
            "public.aiff-audio", "public.aifc-audio", extensions: "aiff aif", mimeTypes: "audio/aiff audio/x-aiff",
            description: "AIFF audio"),
        Definition(
            "com.microsoft.waveform-audio", "public.audio", extensions: "wav wave",
            mimeTypes: "audio/vnd.wave audio/wav audio/wave audio/x-wav", description: "waveform audio"),
        Definition(
            "public.midi-audio", "public.audio", extensions: "midi mid smf kar", mimeTypes: "audio/midi audio/x-midi",
            description: "MIDI audio"),
        Definition("public.playlist", description: "playlist"),
        Definition(
            "public.m3u-playlist", "public.plain-text public.playlist", extensions: "m3u m3u8",
            mimeTypes: "audio/mpegurl application/vnd.apple.mpegurl audio/x-mpegurl", description: "M3U playlist"),
        Definition("public.folder", "public.directory", description: "folder"),
        Definition("public.volume", "public.folder", description: "volume"),
        Definition("com.apple.package", "public.directory", description: "package"),
        Definition("com.apple.bundle", "public.directory", description: "bundle"),
        Definition("com.apple.plugin", "com.apple.bundle com.apple.package", extensions: "plugin", description: "plug-in"),
        Definition(
            "com.apple.metadata-importer", "com.apple.plugin", extensions: "mdimporter", description: "Spotlight importer"),
        Definition(
            "com.apple.quicklook-generator", "com.apple.plugin", extensions: "qlgenerator", description: "Quick Look generator"),
        Definition("com.apple.xpc-service", "com.apple.bundle com.apple.package", extensions: "xpc", description: "XPC service"),
        Definition("com.apple.framework", "com.apple.bundle", extensions: "framework", description: "framework"),
        Definition("com.apple.application", "public.executable", description: "application"),
        Definition(
            "com.apple.application-bundle", "com.apple.application com.apple.bundle com.apple.package", extensions: "app",
            description: "application"),
        Definition(
            "com.apple.application-and-system-extension", "com.apple.xpc-service", extensions: "appex",
            description: "application extension"),
        Definition("public.unix-executable", "public.data public.executable", description: "Unix executable"),
        Definition(
            "com.microsoft.windows-executable", "public.data public.executable", extensions: "exe",
            mimeTypes: "application/x-msdownload", description: "Microsoft Windows application"),
        Definition(
            "com.apple.systempreference.prefpane", "com.apple.package com.apple.bundle", extensions: "prefPane",
            description: "system preference pane"),
        Definition("public.archive", description: "file archive"),
        Definition(
            "org.gnu.gnu-zip-archive", "public.data public.archive", extensions: "gz gzip",
            mimeTypes: "application/x-gzip application/gzip", description: "GZip archive"),
        Definition(
            "public.bzip2-archive", "public.data public.archive", extensions: "bz2 bz",
            mimeTypes: "application/x-bzip2 application/x-bzip application/bzip2 application/bzip application/x-bz2",
            description: "Bzip2 archive"),
        Definition(
            "public.zip-archive", "com.pkware.zip-archive", extensions: "zip",
            mimeTypes: "application/zip application/x-zip-compressed", description: "Zip archive"),
        Definition("com.apple.archive", "public.data public.archive", extensions: "aar yaa", description: "Apple archive"),
        Definition(
            "public.tar-archive", "public.data public.archive", extensions: "tar", mimeTypes: "application/x-tar application/tar",
            description: "tar archive"),
        Definition("public.spreadsheet", "public.content", description: "spreadsheet"),
        Definition("public.presentation", "public.composite-content", description: "presentation"),
        Definition("public.database", description: "database"),
        Definition("public.message", description: "message"),
        Definition("public.contact", description: "contact information"),
        Definition(
            "public.vcard", "public.text public.contact", extensions: "vcf vcard",
            mimeTypes: "text/vcard text/directory text/x-vcard", description: "electronic business card"),
        Definition("public.to-do-item", description: "to-do item"),
        Definition("public.calendar-event", description: "calendar event"),
        Definition("public.email-message", "public.message", description: "email message"),
        Definition("com.apple.internet-location", "public.data", description: "internet location"),
        Definition("com.microsoft.internet-shortcut", "public.data", extensions: "url", description: "Windows internet shortcut"),
        Definition("public.font", "public.data", description: "font"),
        Definition("public.bookmark", description: "bookmark"),
        Definition(
            "com.rsa.pkcs-12", "public.data", extensions: "p12 pfx", mimeTypes: "application/x-pkcs12",
            description: "personal information exchange (PKCS#12)"),
        Definition(
            "public.x509-certificate", "public.data", extensions: "cer der crt pem", mimeTypes: "application/x-x509-ca-cert",
            description: "certificate (X.509)"),
        Definition(
            "org.idpf.epub-container", "public.data public.composite-content", extensions: "epub",
            mimeTypes: "application/epub+zip", description: "EPUB publication"),
        Definition("public.log", "public.item", description: "log file"),
        Definition("com.apple.haptics.ahap", "public.data", extensions: "ahap", description: "Apple haptics and audio pattern"),
        Definition(
            "public.geojson", "public.json", extensions: "geojson", mimeTypes: "application/geo+json", description: "GeoJSON"),
        Definition("com.apple.linkpresentation.metadata", "public.data", description: "link metadata"),
        Definition("com.pkware.zip-archive", "public.data public.archive", description: "PKZip archive"),
        Definition("public.heif-standard", "public.image", description: "HEIF image"),
        Definition("public.aifc-audio", "public.audio", extensions: "aifc", description: "AIFF-C audio"),
        Definition(
            "com.apple.m4a-audio", "public.mpeg-4-audio", extensions: "m4a", mimeTypes: "audio/x-m4a",
            description: "Apple MPEG-4 audio"),
        Definition(
            "com.apple.m4v-video", "public.mpeg-4", extensions: "m4v", mimeTypes: "video/x-m4v", description: "Apple MPEG-4 movie"
        ),
        Definition("com.apple.log", "public.plain-text public.log", extensions: "log"),
        Definition(
            "net.daringfireball.markdown", "public.utf8-plain-text", extensions: "md markdown", mimeTypes: "text/markdown",
            description: "Markdown text"),
    ]
}
