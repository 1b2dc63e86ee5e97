import Foundation
import FoundationModels

/// Questions about images.
struct PhotoDesk {
    let session: LanguageModelSession

    func describe(photoAt url: URL) async throws -> String {
        try await session.respond {
            "What is in this picture?"
            Attachment(imageURL: url)
        }.content
    }

    /// Labels allow the model to refer to an image.
    func choose(from photos: [URL]) async throws -> PhotoChoice {
        try await session.respond(generating: PhotoChoice.self) {
            "Which picture is best for the cover?"
            for (index, url) in photos.enumerated() {
                "Picture \(index + 1):"
                Attachment(imageURL: url).label("photo-\(index + 1)")
            }
        }.content
    }

    /// The file of the chosen image, from the transcript.
    func file(of choice: PhotoChoice) -> URL? {
        choice.photo.resolved(in: session.transcript)?.url
    }

    func labels() -> [String] {
        session.transcript.flatMap { entry -> [Transcript.Segment] in
            guard case .prompt(let prompt) = entry else { return [] }
            return prompt.segments
        }
        .compactMap { segment in
            guard case .attachment(let attachment) = segment else { return nil }
            return attachment.label
        }
    }
}

@Generable
struct PhotoChoice: Equatable {
    @Guide(description: "The picture for the cover")
    var photo: ImageReference
    var reason: String
}

/// A tool that resolves an image reference from the transcript.
struct CropTool: Tool {
    let name = "cropPhoto"
    let description = "Crops a picture to its subject."

    @SessionProperty(\.history) var history

    @Generable
    struct Arguments: Sendable {
        @Guide(description: "Which picture to crop")
        var photo: ImageReference
    }

    func call(arguments: Arguments) async throws -> String {
        guard let image = arguments.photo.resolved(in: history) else {
            return "There is no picture called \(arguments.photo.attachmentLabel)."
        }
        return "Cropped \(image.url?.lastPathComponent ?? "the picture")."
    }
}

enum PhotoTranscripts {
    static func prompt(with url: URL, label: String?) -> Transcript.Prompt {
        let attachment = Transcript.AttachmentSegment(
            id: "a-1", content: .image(Transcript.ImageAttachment(imageURL: url)), label: label)
        return Transcript.Prompt(segments: [.text(.init(content: "Look:")), .attachment(attachment)])
    }

    static func instructions(with example: URL) -> Instructions {
        Instructions {
            "Good covers look like this:"
            Attachment(imageURL: example).label("example")
        }
    }

    static func reference(to label: String) throws -> ImageReference {
        try ImageReference(GeneratedContent(properties: ["attachmentLabel": label]))
    }
}
