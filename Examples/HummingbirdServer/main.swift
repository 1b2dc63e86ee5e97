/// HummingbirdServer: a web service whose answers come from a model on the same machine.
///
///     swift run HummingbirdServer
///     curl -N -H 'Content-Type: application/json' -d '{"text": "Why is the sky blue?"}' http://127.0.0.1:8080/answers
///     curl -H 'Content-Type: application/json' -d '{"text": "The invoice of May is wrong!"}' http://127.0.0.1:8080/tickets
///
/// `/answers` streams text as server-sent events; `/tickets` returns a value whose form the model cannot miss. Each request has a session of
/// its own. Sessions share the weights and the beginnings of their prompts; eight requests run at once, others wait. If a client goes away,
/// writing fails, the loop ends, and the model stops.

import Foundation
import FoundationModels
import Hummingbird

/// The body of a request.
struct Message: Decodable {
    var text: String
}

@Generable(description: "A message of a customer, for the staff who answers it")
struct Ticket: ResponseEncodable {
    var department: Department
    @Guide(description: "What the customer wants, in one sentence") var summary: String
    @Guide(description: "How urgent it is, 3 is most urgent", .range(1...3)) var urgency: Int

    @Generable
    enum Department: String, Codable { case billing, delivery, technology, other }
}

/// Turns errors of the model into statuses.
struct ModelErrors<Context: RequestContext>: RouterMiddleware {
    func handle(
        _ request: Request, context: Context, next: (Request, Context) async throws -> Response
    ) async throws -> Response {
        do {
            return try await next(request, context)
        } catch let error as LanguageModelError {
            throw HTTPError(.unprocessableContent, message: error.localizedDescription)
        } catch SystemLanguageModel.Error.assetsUnavailable(let reason) {
            throw HTTPError(.serviceUnavailable, message: reason.debugDescription)
        }
    }
}

let router = Router()
router.add(middleware: ModelErrors())

router.post("tickets") { request, context -> Ticket in
    let message = try await request.decode(as: Message.self, context: context)
    let session = LanguageModelSession(instructions: "You sort the messages of customers.")
    return try await session.respond(
        to: message.text, generating: Ticket.self, options: GenerationOptions(samplingMode: .greedy)
    ).content
}

router.post("answers") { request, context -> Response in
    let message = try await request.decode(as: Message.self, context: context)
    let body = ResponseBody { writer in
        let session = LanguageModelSession(instructions: "Answer in at most three sentences.")
        do {
            // A snapshot contains the whole text so far, so only the new part is sent.
            var written = 0
            for try await snapshot in session.streamResponse(to: message.text) {
                let new = String(Substring(snapshot.content.utf8.dropFirst(written)))
                written = snapshot.content.utf8.count
                try await writer.write(ByteBuffer(string: "data: \(GeneratedContent(new).jsonString)\n\n"))
            }
        } catch let error as LanguageModelError {
            // The status has been sent already.
            let reason = GeneratedContent(error.localizedDescription).jsonString
            try await writer.write(ByteBuffer(string: "event: error\ndata: \(reason)\n\n"))
        }
        try await writer.finish(nil)
    }
    return Response(status: .ok, headers: [.contentType: "text/event-stream"], body: body)
}

// The first request does not wait for the weights.
LanguageModelSession().prewarm()
let app = Application(router: router, configuration: .init(address: .hostname("127.0.0.1", port: 8080)))
try await app.runService()
