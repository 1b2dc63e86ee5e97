/// The types that Apple's module declares.
extension UTType {
    /// Anything that has a place in a file system.
    public static var item: UTType { UTType(known: "public.item") }
    /// What documents contain.
    public static var content: UTType { UTType(known: "public.content") }
    /// Content of several kinds in one document.
    public static var compositeContent: UTType { UTType(known: "public.composite-content") }
    /// A file that can be mounted as a volume.
    public static var diskImage: UTType { UTType(known: "public.disk-image") }
    /// A sequence of bytes.
    public static var data: UTType { UTType(known: "public.data") }
    /// A folder or a package.
    public static var directory: UTType { UTType(known: "public.directory") }
    /// A reference to something else, such as a symbolic link.
    public static var resolvable: UTType { UTType(known: "com.apple.resolvable") }
    /// A symbolic link.
    public static var symbolicLink: UTType { UTType(known: "public.symlink") }
    /// Something that can be run.
    public static var executable: UTType { UTType(known: "public.executable") }
    /// A place where a volume is mounted.
    public static var mountPoint: UTType { UTType(known: "com.apple.mount-point") }
    /// An alias file.
    public static var aliasFile: UTType { UTType(known: "com.apple.alias-file") }
    /// The data of a bookmark of a URL.
    public static var urlBookmarkData: UTType { UTType(known: "com.apple.bookmark") }
    /// A URL.
    public static var url: UTType { UTType(known: "public.url") }
    /// The URL of a file.
    public static var fileURL: UTType { UTType(known: "public.file-url") }
    /// Text, with or without markup.
    public static var text: UTType { UTType(known: "public.text") }
    /// Text without markup, in any encoding.
    public static var plainText: UTType { UTType(known: "public.plain-text") }
    /// Text without markup, in UTF-8.
    public static var utf8PlainText: UTType { UTType(known: "public.utf8-plain-text") }
    /// Text without markup, in UTF-16 with a byte order mark or in big-endian order.
    public static var utf16ExternalPlainText: UTType { UTType(known: "public.utf16-external-plain-text") }
    /// Text without markup, in UTF-16.
    public static var utf16PlainText: UTType { UTType(known: "public.utf16-plain-text") }
    /// Values with separators between them.
    public static var delimitedText: UTType { UTType(known: "public.delimited-values-text") }
    /// Values with commas between them.
    public static var commaSeparatedText: UTType { UTType(known: "public.comma-separated-values-text") }
    /// Values with tabs between them.
    public static var tabSeparatedText: UTType { UTType(known: "public.tab-separated-values-text") }
    /// Values with tabs between them, in UTF-8.
    public static var utf8TabSeparatedText: UTType { UTType(known: "public.utf8-tab-separated-values-text") }
    /// Rich text.
    public static var rtf: UTType { UTType(known: "public.rtf") }
    /// HTML.
    public static var html: UTType { UTType(known: "public.html") }
    /// XML.
    public static var xml: UTType { UTType(known: "public.xml") }
    /// YAML.
    public static var yaml: UTType { UTType(known: "public.yaml") }
    /// Style sheets of web pages.
    public static var css: UTType { UTType(known: "public.css") }
    /// Source code in any language.
    public static var sourceCode: UTType { UTType(known: "public.source-code") }
    /// Assembly language.
    public static var assemblyLanguageSource: UTType { UTType(known: "public.assembly-source") }
    /// C.
    public static var cSource: UTType { UTType(known: "public.c-source") }
    /// Objective-C.
    public static var objectiveCSource: UTType { UTType(known: "public.objective-c-source") }
    /// Swift.
    public static var swiftSource: UTType { UTType(known: "public.swift-source") }
    /// C++.
    public static var cPlusPlusSource: UTType { UTType(known: "public.c-plus-plus-source") }
    /// Objective-C++.
    public static var objectiveCPlusPlusSource: UTType { UTType(known: "public.objective-c-plus-plus-source") }
    /// A C header.
    public static var cHeader: UTType { UTType(known: "public.c-header") }
    /// A C++ header.
    public static var cPlusPlusHeader: UTType { UTType(known: "public.c-plus-plus-header") }
    /// Source code in any scripting language.
    public static var script: UTType { UTType(known: "public.script") }
    /// AppleScript, as text.
    public static var appleScript: UTType { UTType(known: "com.apple.applescript.text") }
    /// AppleScript, compiled.
    public static var osaScript: UTType { UTType(known: "com.apple.applescript.script") }
    /// AppleScript, as a bundle.
    public static var osaScriptBundle: UTType { UTType(known: "com.apple.applescript.script-bundle") }
    /// JavaScript.
    public static var javaScript: UTType { UTType(known: "com.netscape.javascript-source") }
    /// A script of a shell.
    public static var shellScript: UTType { UTType(known: "public.shell-script") }
    /// Perl.
    public static var perlScript: UTType { UTType(known: "public.perl-script") }
    /// Python.
    public static var pythonScript: UTType { UTType(known: "public.python-script") }
    /// Ruby.
    public static var rubyScript: UTType { UTType(known: "public.ruby-script") }
    /// PHP.
    public static var phpScript: UTType { UTType(known: "public.php-script") }
    /// Rules of Make.
    public static var makefile: UTType { UTType(known: "public.make-source") }
    /// JSON.
    public static var json: UTType { UTType(known: "public.json") }
    /// A property list of any form.
    public static var propertyList: UTType { UTType(known: "com.apple.property-list") }
    /// A property list in XML.
    public static var xmlPropertyList: UTType { UTType(known: "com.apple.xml-property-list") }
    /// A property list in bytes.
    public static var binaryPropertyList: UTType { UTType(known: "com.apple.binary-property-list") }
    /// PDF.
    public static var pdf: UTType { UTType(known: "com.adobe.pdf") }
    /// Rich text with attachments, as a package.
    public static var rtfd: UTType { UTType(known: "com.apple.rtfd") }
    /// Rich text with attachments, as data.
    public static var flatRTFD: UTType { UTType(known: "com.apple.flat-rtfd") }
    /// A web page with its resources.
    public static var webArchive: UTType { UTType(known: "com.apple.webarchive") }
    /// A picture.
    public static var image: UTType { UTType(known: "public.image") }
    /// A JPEG picture.
    public static var jpeg: UTType { UTType(known: "public.jpeg") }
    /// A TIFF picture.
    public static var tiff: UTType { UTType(known: "public.tiff") }
    /// A GIF picture.
    public static var gif: UTType { UTType(known: "com.compuserve.gif") }
    /// A PNG picture.
    public static var png: UTType { UTType(known: "public.png") }
    /// Icons of Apple's systems.
    public static var icns: UTType { UTType(known: "com.apple.icns") }
    /// A Windows bitmap.
    public static var bmp: UTType { UTType(known: "com.microsoft.bmp") }
    /// Icons of Windows.
    public static var ico: UTType { UTType(known: "com.microsoft.ico") }
    /// The raw data of a camera.
    public static var rawImage: UTType { UTType(known: "public.camera-raw-image") }
    /// An SVG picture.
    public static var svg: UTType { UTType(known: "public.svg-image") }
    /// A picture with the moments around it.
    public static var livePhoto: UTType { UTType(known: "com.apple.live-photo") }
    /// A HEIF picture.
    public static var heif: UTType { UTType(known: "public.heif") }
    /// A HEIC picture.
    public static var heic: UTType { UTType(known: "public.heic") }
    /// A sequence of HEIC pictures.
    public static var heics: UTType { UTType(known: "public.heics") }
    /// A WebP picture.
    public static var webP: UTType { UTType(known: "org.webmproject.webp") }
    /// An OpenEXR picture.
    public static var exr: UTType { UTType(known: "com.ilm.openexr-image") }
    /// A digital negative.
    public static var dng: UTType { UTType(known: "com.adobe.raw-image") }
    /// A JPEG XL picture.
    public static var jpegxl: UTType { UTType(known: "public.jpeg-xl") }
    /// A model in three dimensions.
    public static var threeDContent: UTType { UTType(known: "public.3d-content") }
    /// A scene in the USD format.
    public static var usd: UTType { UTType(known: "com.pixar.universal-scene-description") }
    /// A scene in the USD format, packed.
    public static var usdz: UTType { UTType(known: "com.pixar.universal-scene-description-mobile") }
    /// A Reality file.
    public static var realityFile: UTType { UTType(known: "com.apple.reality") }
    /// A SceneKit scene.
    public static var sceneKitScene: UTType { UTType(known: "com.apple.scenekit.scene") }
    /// An object to be recognized in augmented reality.
    public static var arReferenceObject: UTType { UTType(known: "com.apple.arobject") }
    /// Sound, video, or both.
    public static var audiovisualContent: UTType { UTType(known: "public.audiovisual-content") }
    /// Moving pictures, which may have sound.
    public static var movie: UTType { UTType(known: "public.movie") }
    /// Moving pictures without sound.
    public static var video: UTType { UTType(known: "public.video") }
    /// Sound.
    public static var audio: UTType { UTType(known: "public.audio") }
    /// A QuickTime movie.
    public static var quickTimeMovie: UTType { UTType(known: "com.apple.quicktime-movie") }
    /// An MPEG-1 or MPEG-2 movie.
    public static var mpeg: UTType { UTType(known: "public.mpeg") }
    /// MPEG-2 video.
    public static var mpeg2Video: UTType { UTType(known: "public.mpeg-2-video") }
    /// An MPEG-2 transport stream.
    public static var mpeg2TransportStream: UTType { UTType(known: "public.mpeg-2-transport-stream") }
    /// MP3 sound.
    public static var mp3: UTType { UTType(known: "public.mp3") }
    /// An MPEG-4 movie.
    public static var mpeg4Movie: UTType { UTType(known: "public.mpeg-4") }
    /// MPEG-4 sound.
    public static var mpeg4Audio: UTType { UTType(known: "public.mpeg-4-audio") }
    /// MPEG-4 sound with Apple's protection.
    public static var appleProtectedMPEG4Audio: UTType { UTType(known: "com.apple.protected-mpeg-4-audio") }
    /// An MPEG-4 movie with Apple's protection.
    public static var appleProtectedMPEG4Video: UTType { UTType(known: "com.apple.protected-mpeg-4-video") }
    /// An AVI movie.
    public static var avi: UTType { UTType(known: "public.avi") }
    /// AIFF sound.
    public static var aiff: UTType { UTType(known: "public.aiff-audio") }
    /// Waveform sound.
    public static var wav: UTType { UTType(known: "com.microsoft.waveform-audio") }
    /// Notes for synthesizers.
    public static var midi: UTType { UTType(known: "public.midi-audio") }
    /// A playlist.
    public static var playlist: UTType { UTType(known: "public.playlist") }
    /// An M3U playlist.
    public static var m3uPlaylist: UTType { UTType(known: "public.m3u-playlist") }
    /// A folder that people open.
    public static var folder: UTType { UTType(known: "public.folder") }
    /// The root folder of a volume.
    public static var volume: UTType { UTType(known: "public.volume") }
    /// A folder that people see as one file.
    public static var package: UTType { UTType(known: "com.apple.package") }
    /// A folder with one of the structures of bundles.
    public static var bundle: UTType { UTType(known: "com.apple.bundle") }
    /// A plug-in.
    public static var pluginBundle: UTType { UTType(known: "com.apple.plugin") }
    /// A plug-in that reads metadata for Spotlight.
    public static var spotlightImporter: UTType { UTType(known: "com.apple.metadata-importer") }
    /// A plug-in that makes previews.
    public static var quickLookGenerator: UTType { UTType(known: "com.apple.quicklook-generator") }
    /// A service that runs in a process of its own.
    public static var xpcService: UTType { UTType(known: "com.apple.xpc-service") }
    /// A framework.
    public static var framework: UTType { UTType(known: "com.apple.framework") }
    /// An application.
    public static var application: UTType { UTType(known: "com.apple.application") }
    /// An application, as a bundle.
    public static var applicationBundle: UTType { UTType(known: "com.apple.application-bundle") }
    /// An extension of an application.
    public static var applicationExtension: UTType { UTType(known: "com.apple.application-and-system-extension") }
    /// A program of Unix.
    public static var unixExecutable: UTType { UTType(known: "public.unix-executable") }
    /// A program of Windows.
    public static var exe: UTType { UTType(known: "com.microsoft.windows-executable") }
    /// A pane of the system's settings.
    public static var systemPreferencesPane: UTType { UTType(known: "com.apple.systempreference.prefpane") }
    /// Files and folders in one.
    public static var archive: UTType { UTType(known: "public.archive") }
    /// A gzip archive.
    public static var gzip: UTType { UTType(known: "org.gnu.gnu-zip-archive") }
    /// A bzip2 archive.
    public static var bz2: UTType { UTType(known: "public.bzip2-archive") }
    /// A zip archive.
    public static var zip: UTType { UTType(known: "public.zip-archive") }
    /// An Apple archive.
    public static var appleArchive: UTType { UTType(known: "com.apple.archive") }
    /// A tar archive.
    public static var tarArchive: UTType { UTType(known: "public.tar-archive") }
    /// A spreadsheet.
    public static var spreadsheet: UTType { UTType(known: "public.spreadsheet") }
    /// A presentation.
    public static var presentation: UTType { UTType(known: "public.presentation") }
    /// A database.
    public static var database: UTType { UTType(known: "public.database") }
    /// A message, such as mail.
    public static var message: UTType { UTType(known: "public.message") }
    /// How to reach a person or a group.
    public static var contact: UTType { UTType(known: "public.contact") }
    /// A business card.
    public static var vCard: UTType { UTType(known: "public.vcard") }
    /// Something to be done.
    public static var toDoItem: UTType { UTType(known: "public.to-do-item") }
    /// An event of a calendar.
    public static var calendarEvent: UTType { UTType(known: "public.calendar-event") }
    /// A mail.
    public static var emailMessage: UTType { UTType(known: "public.email-message") }
    /// A file with an address of the internet.
    public static var internetLocation: UTType { UTType(known: "com.apple.internet-location") }
    /// A file of Windows with an address of the internet.
    public static var internetShortcut: UTType { UTType(known: "com.microsoft.internet-shortcut") }
    /// A font.
    public static var font: UTType { UTType(known: "public.font") }
    /// A bookmark.
    public static var bookmark: UTType { UTType(known: "public.bookmark") }
    /// Keys and certificates in the PKCS #12 format.
    public static var pkcs12: UTType { UTType(known: "com.rsa.pkcs-12") }
    /// An X.509 certificate.
    public static var x509Certificate: UTType { UTType(known: "public.x509-certificate") }
    /// An EPUB book.
    public static var epub: UTType { UTType(known: "org.idpf.epub-container") }
    /// A log.
    public static var log: UTType { UTType(known: "public.log") }
    /// A pattern of haptics and sound.
    public static var ahap: UTType { UTType(known: "com.apple.haptics.ahap") }
    /// GeoJSON.
    public static var geoJSON: UTType { UTType(known: "public.geojson") }
    /// What is shown of a link.
    public static var linkPresentationMetadata: UTType { UTType(known: "com.apple.linkpresentation.metadata") }
}
