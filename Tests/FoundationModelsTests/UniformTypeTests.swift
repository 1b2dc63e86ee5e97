import Foundation
import Testing

@testable import UniformTypeIdentifiers

struct UniformTypeTests {
    @Test("every type of Apple's module has its identifier, and is the one that the identifier names") func systemTypes() {
        let types: [(UTType, String)] = [
            (.item, "public.item"),
            (.content, "public.content"),
            (.compositeContent, "public.composite-content"),
            (.diskImage, "public.disk-image"),
            (.data, "public.data"),
            (.directory, "public.directory"),
            (.resolvable, "com.apple.resolvable"),
            (.symbolicLink, "public.symlink"),
            (.executable, "public.executable"),
            (.mountPoint, "com.apple.mount-point"),
            (.aliasFile, "com.apple.alias-file"),
            (.urlBookmarkData, "com.apple.bookmark"),
            (.url, "public.url"),
            (.fileURL, "public.file-url"),
            (.text, "public.text"),
            (.plainText, "public.plain-text"),
            (.utf8PlainText, "public.utf8-plain-text"),
            (.utf16ExternalPlainText, "public.utf16-external-plain-text"),
            (.utf16PlainText, "public.utf16-plain-text"),
            (.delimitedText, "public.delimited-values-text"),
            (.commaSeparatedText, "public.comma-separated-values-text"),
            (.tabSeparatedText, "public.tab-separated-values-text"),
            (.utf8TabSeparatedText, "public.utf8-tab-separated-values-text"),
            (.rtf, "public.rtf"),
            (.html, "public.html"),
            (.xml, "public.xml"),
            (.yaml, "public.yaml"),
            (.css, "public.css"),
            (.sourceCode, "public.source-code"),
            (.assemblyLanguageSource, "public.assembly-source"),
            (.cSource, "public.c-source"),
            (.objectiveCSource, "public.objective-c-source"),
            (.swiftSource, "public.swift-source"),
            (.cPlusPlusSource, "public.c-plus-plus-source"),
            (.objectiveCPlusPlusSource, "public.objective-c-plus-plus-source"),
            (.cHeader, "public.c-header"),
            (.cPlusPlusHeader, "public.c-plus-plus-header"),
            (.script, "public.script"),
            (.appleScript, "com.apple.applescript.text"),
            (.osaScript, "com.apple.applescript.script"),
            (.osaScriptBundle, "com.apple.applescript.script-bundle"),
            (.javaScript, "com.netscape.javascript-source"),
            (.shellScript, "public.shell-script"),
            (.perlScript, "public.perl-script"),
            (.pythonScript, "public.python-script"),
            (.rubyScript, "public.ruby-script"),
            (.phpScript, "public.php-script"),
            (.makefile, "public.make-source"),
            (.json, "public.json"),
            (.propertyList, "com.apple.property-list"),
            (.xmlPropertyList, "com.apple.xml-property-list"),
            (.binaryPropertyList, "com.apple.binary-property-list"),
            (.pdf, "com.adobe.pdf"),
            (.rtfd, "com.apple.rtfd"),
            (.flatRTFD, "com.apple.flat-rtfd"),
            (.webArchive, "com.apple.webarchive"),
            (.image, "public.image"),
            (.jpeg, "public.jpeg"),
            (.tiff, "public.tiff"),
            (.gif, "com.compuserve.gif"),
            (.png, "public.png"),
            (.icns, "com.apple.icns"),
            (.bmp, "com.microsoft.bmp"),
            (.ico, "com.microsoft.ico"),
            (.rawImage, "public.camera-raw-image"),
            (.svg, "public.svg-image"),
            (.livePhoto, "com.apple.live-photo"),
            (.heif, "public.heif"),
            (.heic, "public.heic"),
            (.heics, "public.heics"),
            (.webP, "org.webmproject.webp"),
            (.exr, "com.ilm.openexr-image"),
            (.dng, "com.adobe.raw-image"),
            (.jpegxl, "public.jpeg-xl"),
            (.threeDContent, "public.3d-content"),
            (.usd, "com.pixar.universal-scene-description"),
            (.usdz, "com.pixar.universal-scene-description-mobile"),
            (.realityFile, "com.apple.reality"),
            (.sceneKitScene, "com.apple.scenekit.scene"),
            (.arReferenceObject, "com.apple.arobject"),
            (.audiovisualContent, "public.audiovisual-content"),
            (.movie, "public.movie"),
            (.video, "public.video"),
            (.audio, "public.audio"),
            (.quickTimeMovie, "com.apple.quicktime-movie"),
            (.mpeg, "public.mpeg"),
            (.mpeg2Video, "public.mpeg-2-video"),
            (.mpeg2TransportStream, "public.mpeg-2-transport-stream"),
            (.mp3, "public.mp3"),
            (.mpeg4Movie, "public.mpeg-4"),
            (.mpeg4Audio, "public.mpeg-4-audio"),
            (.appleProtectedMPEG4Audio, "com.apple.protected-mpeg-4-audio"),
            (.appleProtectedMPEG4Video, "com.apple.protected-mpeg-4-video"),
            (.avi, "public.avi"),
            (.aiff, "public.aiff-audio"),
            (.wav, "com.microsoft.waveform-audio"),
            (.midi, "public.midi-audio"),
            (.playlist, "public.playlist"),
            (.m3uPlaylist, "public.m3u-playlist"),
            (.folder, "public.folder"),
            (.volume, "public.volume"),
            (.package, "com.apple.package"),
            (.bundle, "com.apple.bundle"),
            (.pluginBundle, "com.apple.plugin"),
            (.spotlightImporter, "com.apple.metadata-importer"),
            (.quickLookGenerator, "com.apple.quicklook-generator"),
            (.xpcService, "com.apple.xpc-service"),
            (.framework, "com.apple.framework"),
            (.application, "com.apple.application"),
            (.applicationBundle, "com.apple.application-bundle"),
            (.applicationExtension, "com.apple.application-and-system-extension"),
            (.unixExecutable, "public.unix-executable"),
            (.exe, "com.microsoft.windows-executable"),
            (.systemPreferencesPane, "com.apple.systempreference.prefpane"),
            (.archive, "public.archive"),
            (.gzip, "org.gnu.gnu-zip-archive"),
            (.bz2, "public.bzip2-archive"),
            (.zip, "public.zip-archive"),
            (.appleArchive, "com.apple.archive"),
            (.tarArchive, "public.tar-archive"),
            (.spreadsheet, "public.spreadsheet"),
            (.presentation, "public.presentation"),
            (.database, "public.database"),
            (.message, "public.message"),
            (.contact, "public.contact"),
            (.vCard, "public.vcard"),
            (.toDoItem, "public.to-do-item"),
            (.calendarEvent, "public.calendar-event"),
            (.emailMessage, "public.email-message"),
            (.internetLocation, "com.apple.internet-location"),
            (.internetShortcut, "com.microsoft.internet-shortcut"),
            (.font, "public.font"),
            (.bookmark, "public.bookmark"),
            (.pkcs12, "com.rsa.pkcs-12"),
            (.x509Certificate, "public.x509-certificate"),
            (.epub, "org.idpf.epub-container"),
            (.log, "public.log"),
            (.ahap, "com.apple.haptics.ahap"),
            (.geoJSON, "public.geojson"),
            (.linkPresentationMetadata, "com.apple.linkpresentation.metadata"),
        ]
        for (type, identifier) in types {
            #expect(type.identifier == identifier && UTType(identifier.uppercased()) == type)
            #expect(type.isDeclared && !type.isDynamic && type.isPublic == identifier.hasPrefix("public."))
        }
        #expect(Set(types.map(\.0)).count == types.count && types.count == 140)
        // What a type conforms to is in the table too.
        let identifiers = Set(UTType.definitions.map(\.identifier))
        for definition in UTType.definitions {
            #expect(identifiers.isSuperset(of: definition.parents), "\(definition.identifier)")
        }
    }

    @Test("types have the extensions, MIME types and supertypes that the system declares") func facts() throws {
        let facts: [(UTType, extension: String?, mimeType: String?, supertypes: [UTType])] = [
            (.zip, "zip", "application/zip", [.data, .archive]), (.rtf, "rtf", "text/rtf", [.text]),
            (.yaml, "yml", "application/x-yaml", [.text]), (.url, nil, nil, [.data, .item]),
            (.tabSeparatedText, "tsv", "text/tab-separated-values", [.delimitedText, .text]),
            (.utf8TabSeparatedText, nil, nil, [.tabSeparatedText, .utf8PlainText]), (.folder, nil, nil, [.directory, .item]),
            (.swiftSource, "swift", nil, [.sourceCode, .plainText, .data, .content]),
            (.pythonScript, "py", "text/x-python-script", [.shellScript, .script, .sourceCode]),
            (.javaScript, "js", "text/javascript", [.sourceCode, .executable]),
            (.applicationBundle, "app", nil, [.application, .bundle, .package, .directory]),
            (.heic, "heic", "image/heic", [.image]), (.svg, "svg", "image/svg+xml", [.image, .xml]),
            (.aiff, "aiff", "audio/aiff", [.audio]), (.mp3, "mp3", "audio/mpeg", [.audio, .audiovisualContent]),
            (.mpeg4Movie, "mp4", "video/mp4", [.movie]), (.mpeg4Audio, "mp4", "audio/mp4", [.mpeg4Movie, .audio]),
            (.vCard, "vcf", "text/vcard", [.text, .contact]), (.epub, "epub", "application/epub+zip", [.compositeContent]),
            (.xmlPropertyList, "plist", nil, [.xml, .propertyList]), (.data, nil, "application/octet-stream", [.item]),
            (.item, nil, nil, []), (.commaSeparatedText, "csv", "text/csv", [.delimitedText]),
        ]
        for fact in facts {
            #expect(fact.0.preferredFilenameExtension == fact.extension && fact.0.preferredMIMEType == fact.mimeType)
            #expect(fact.0.supertypes.isSuperset(of: fact.supertypes), "\(fact.0)")
            for type in fact.supertypes {
                #expect(fact.0.conforms(to: type) && fact.0.isSubtype(of: type) && type.isSupertype(of: fact.0))
            }
        }
        #expect(UTType.png.conforms(to: .png) && !UTType.png.isSubtype(of: .png) && !UTType.png.conforms(to: .text))
        #expect(!UTType.folder.conforms(to: .data) && UTType.item.supertypes.isEmpty)
        #expect(UTType.zip.localizedDescription == "Zip archive" && UTType.utf8PlainText.localizedDescription == "text")
        #expect(UTType.zip.tags[.mimeType] == ["application/zip", "application/x-zip-compressed"])
        #expect(UTType.zip.tags[.filenameExtension] == ["zip"] && UTType.folder.tags.isEmpty)
        #expect(UTType.zip.version == nil && UTType.zip.referenceURL == nil)
        #expect(Set([UTType.png, .png, .gif]).count == 2)
    }

    @Test("types are found by their extensions and MIME types") func lookUp() throws {
        let files: [(String, UTType)] = [
            ("JPG", .jpeg), ("plist", .propertyList), ("mp4", .mpeg4Movie), ("prefpane", .systemPreferencesPane),
            ("ts", .mpeg2TransportStream),
        ]
        for (name, type) in files { #expect(UTType(tag: name, tagClass: .filenameExtension, conformingTo: nil) == type) }
        #expect(UTType(filenameExtension: "m4a")?.conforms(to: .mpeg4Audio) == true)
        #expect(UTType(filenameExtension: "md")?.identifier == "net.daringfireball.markdown")
        #expect(UTType(filenameExtension: "app", conformingTo: .package) == .applicationBundle)
        #expect(UTType(mimeType: "text/csv; charset=utf-8") == .commaSeparatedText)
        #expect(UTType(mimeType: "Text/Plain ; charset=UTF-8") == .utf8PlainText && UTType(mimeType: "text/plain") == .plainText)
        #expect(UTType(mimeType: "audio/mp4") == .mpeg4Audio)
        let lists = UTType.types(tag: "plist", tagClass: .filenameExtension, conformingTo: .xml)
        #expect(lists == [.xmlPropertyList])
        #expect(UTType.types(tag: "plist", tagClass: .filenameExtension, conformingTo: nil).count == 3)
        #expect(UTType.types(tag: "", tagClass: .filenameExtension, conformingTo: nil).isEmpty)
        #expect(UTType(filenameExtension: "a/b") == nil && UTType(mimeType: "no type") == nil && UTType(mimeType: "text/") == nil)
        #expect(UTType("com.example.unknown") == nil)
    }

    @Test("an unknown tag has a dynamic type, which is computed from the tag alone") func dynamicTypes() throws {
        let type = try #require(UTType(filenameExtension: "XYZ", conformingTo: .image))
        #expect(type.identifier == "dyn.public_2efilename-extension.xyz.public_2eimage")
        #expect(type.isDynamic && !type.isDeclared && !type.isPublic && type.localizedDescription == nil)
        #expect(type.conforms(to: .image) && type.supertypes == UTType.image.supertypes.union([.image]))
        #expect(type.preferredFilenameExtension == "xyz" && type.tags == [.filenameExtension: ["xyz"]])
        // The identifier is enough, also in another program.
        #expect(UTType("dyn.public_2Efilename-extension.abc.public_2Eaudio")?.conforms(to: .audio) == true)
        let other = try #require(UTType(mimeType: "Application/X-Ü; a=b", conformingTo: type))
        #expect(other.preferredMIMEType == "application/x-ü" && other.conforms(to: type) && other.conforms(to: .image))
        #expect(UTType(other.identifier.uppercased()) == other)
        #expect(UTType(filenameExtension: "png", conformingTo: .text)?.isDynamic == true)
        let free = try #require(UTType(tag: "TEXT", tagClass: UTTagClass(rawValue: "com.apple.ostype"), conformingTo: nil))
        #expect(free.isDynamic && free.supertypes.isEmpty && free.tags.values.first == ["TEXT"])
        // Identifiers of dynamic types that another system has made.
        #expect(UTType("dyn.ah62d4rv4ge80n5dmsa")?.isDynamic == true && UTType("dyn._zz.a.b")?.tags.isEmpty == true)
        #expect(UTType("dyn.not an identifier") == nil)
    }

    @Test("a program declares types, also ones that conform to each other, and reads those of other programs") func declarations()
        throws
    {
        let place = UTType(exportedAs: "com.example.type-of-place", conformingTo: .json)
        #expect(
            place.conforms(to: .json) && place.conforms(to: .data) && place.isDeclared
                && UTType("COM.example.type-of-place") == place)
        #expect(UTType(importedAs: "com.example.type-of-place", conformingTo: .image) == place && !place.conforms(to: .image))
        #expect(UTType(exportedAs: "com.example.type-without-parent").conforms(to: .data) && place.localizedDescription == "JSON")
        #expect(UTType(exportedAs: "public.PNG") == .png)
        let read = try JSONDecoder().decode([UTType].self, from: Data(#"["com.example.foreign", "public.zip-archive"]"#.utf8))
        #expect(read[0].supertypes.isEmpty && !read[0].isDeclared && !read[0].isDynamic && read[1] == .zip)
        let child = UTType(exportedAs: "com.example.type-child", conformingTo: read[0])
        let parent = UTType(exportedAs: "com.example.foreign", conformingTo: child)
        #expect(child.conforms(to: parent) && parent.conforms(to: child) && parent.localizedDescription == nil)
        let dynamic = try #require(UTType(filenameExtension: "xyz"))
        #expect(try JSONDecoder().decode([UTType].self, from: JSONEncoder().encode([UTType.pdf, dynamic])) == [.pdf, dynamic])
        #expect(throws: DecodingError.self) {
            try JSONDecoder().decode([UTType].self, from: Data(#"["not an identifier"]"#.utf8))
        }
        let classes = [UTTagClass.filenameExtension, .mimeType]
        #expect(try JSONDecoder().decode([UTTagClass].self, from: JSONEncoder().encode(classes)) == classes)
        #expect("\(UTTagClass.mimeType)" == "public.mime-type" && "\(UTType.png)" == "public.png")
    }

    @Test("the extension of a type is appended to a name that has none of the type") func fileNames() {
        let folder = URL(filePath: "/tmp", directoryHint: .isDirectory)
        #expect(folder.appendingPathComponent("readme", conformingTo: .plainText).path == "/tmp/readme.txt")
        #expect(folder.appendingPathComponent("puppy.jpg", conformingTo: .image).path == "/tmp/puppy.jpg")
        #expect(folder.appendingPathComponent("puppy.jpg", conformingTo: .plainText).path == "/tmp/puppy.jpg.txt")
        #expect(folder.appendingPathComponent("things", conformingTo: .folder).hasDirectoryPath)
        #expect(URL(filePath: "/tmp/a.PLIST").appendingPathExtension(for: .xmlPropertyList).path == "/tmp/a.PLIST")
        var file = URL(filePath: "/tmp/a")
        file.appendPathExtension(for: .json)
        #expect(file.path == "/tmp/a.json")
        file = folder
        file.appendPathComponent("b", conformingTo: .png)
        #expect(file.path == "/tmp/b.png")
    }
}
