import ArgumentParser
import ContextKit
import Foundation
import FoundationModels
import InstalledModels
import MCP
import Synchronization
import Reports

struct Chat: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "chat",
        abstract: "Hold a conversation of unlimited length.",
        discussion: """
            When the context window is full, older turns are moved to an archive and recalled automatically when a prompt \
            needs them (/recall shows which ones, and why). With --save a conversation is saved, word for word; \
            --resume continues it, even after a crash.

            /help lists the commands. The arrow keys edit the line and select earlier ones; Alt-Enter or Ctrl-J begins a new \
            line within a message, and pasted text is one message. Ctrl-C stops an answer, Ctrl-D quits. A message that is stopped \
            before its answer begins is in the next line, to send or to change. In piped input each line is a message.

            A message that is rejected or declined does not end the chat: the reason is written to standard error. In a pipe, \
            the exit code then is not 0.
            """)

    @OptionGroup var flags: GenerationFlags

    @OptionGroup var mcpFlags: MCPFlags

    @Option(help: ArgumentHelp("Size of the context window in tokens (default: 4096 at most).", valueName: "tokens"))
    var context: Int?

    @Option(help: ArgumentHelp("Save the conversation under this name.", valueName: "name"))
    var save: String?

    @Option(help: ArgumentHelp("Continue a saved conversation; “last” is the newest.", valueName: "name"))
    var resume: String?

    @Option(help: ArgumentHelp("Delete a saved conversation, and do nothing else.", valueName: "name"))
    var delete: String?

    func validate() throws {
        if delete != nil, save != nil || resume != nil { throw ValidationError("--delete does nothing else: use it alone.") }
        if let context, !(Self.minimumContext...1_048_576).contains(context) {
            throw ValidationError("--context must be from \(Self.minimumContext) to 1048576 tokens; the model may allow less.")
        }
        if save != nil, resume != nil { throw ValidationError("--resume also saves: do not use --save with it.") }
    }

    private static let minimumContext = 256

    private static let help = """
          /help         show this list
          /context      show the contents of the context, in tokens (also /tokens)
          /recall       show the earlier turns recalled for the last prompt, and why
          /pin FACT     always keep a fact in the context; without FACT: list the facts
          /unpin FACT   remove a pinned fact
          /compact      make the context smaller now
          /good         rate the last answer (“fm feedback” shows ratings)
          /bad WHY      rate the last answer; WHY may begin with a category such as incorrect
          /better TEXT  say what the answer should have been; TEXT may begin with a category and a colon
          /save NAME    save this conversation, and what follows
          /saved        list the saved conversations (“fm chat --delete NAME” deletes one)
          /reset        start a new conversation
          /quit         quit (or Ctrl-D)

        """

    func run() async throws {
        if let delete { return try Self.delete(delete) }
        let choice = try flags.modelFlags.choice()
        try choice.check()
        let model = choice.systemModel(guardrails: flags.guardrails.value, contextSize: context)
        var isSaved = save != nil || resume != nil
        var archive = isSaved ? try ConversationArchive(url: Self.archiveFile) : try ConversationArchive()
        var name = try chosenName(archive)
        let isTerminal = isatty(STDIN_FILENO) == 1
        let servers = try await mcpFlags.connect(ask: isTerminal ? Self.allows : nil)
        try await Self.tell(servers, model, isTerminal)
        let tools = servers.flatMap(\.tools)
        var conversation = try await begin(name, archive, model, tools, isTerminal)
        var editor = LineEditor(prompt: "> ")
        // What is typed while an answer is written belongs to the next line.
        if isTerminal, !Terminal.isDumb { TerminalEcho.hide() }
        defer { TerminalEcho.show() }
        if isTerminal { print("Ask anything. /help lists the commands.") }
        var last: ChatExchange?
        var failed: CommandFailure?
        if let unanswered = await conversation.unanswered { print("Not answered last time: \(unanswered)") }
        // A message that was stopped before its answer began: its user may want to send it again, or to change it.
        var draft = ""
        messages: while let line = isTerminal ? editor.readLine(draft) : StandardInput.line() {
            draft = ""
            // Answers are written unbuffered. Flushing keeps the output of commands in order with them, also in a pipe.
            defer { fflush(nil) }
            let message = line.trimmingCharacters(in: .whitespaces)
            switch message {
            case "": continue
            case "/help": print(Self.help, terminator: "")
            case "/quit", "/exit": break messages
            case "/reset":
                await saveKVCache(conversation)
                name = isSaved ? "\(name) \(Int(Date().timeIntervalSince1970))" : UUID().uuidString
                conversation = try await begin(name, archive, model, tools, isTerminal)
                print("A new conversation.")
            case "/saved": Self.list()
            case _ where message == "/save" || message.hasPrefix("/save "):
                let chosen = message.dropFirst(5).trimmingCharacters(in: .whitespaces)
                if isSaved {
                    print("This conversation is saved as “\(name)”.")
                } else if let saved = await Self.save(conversation, in: archive, as: chosen) {
                    (archive, name, isSaved) = (saved, chosen, true)
                    conversation = try await begin(name, archive, model, tools, isTerminal)
                    print("Saved. “fm chat --resume \(name)” continues it.")
                }
            case _ where ["/good", "/bad", "/better"].contains(message.prefix { $0 != " " }):
                let argument = message.drop { $0 != " " }.trimmingCharacters(in: .whitespaces)
                print(last?.rate(String(message.prefix { $0 != " " }), argument) ?? "There was no answer yet.")
            case _ where message.hasPrefix("/"):
                if await !command(message, conversation) { failed = CommandFailure() }
            default:
                do {
                    let answer = try await say(message, conversation, isTerminal)
                    if let failure = answer.failure { failed = failure }
                    if answer.isStopped, answer.text.isEmpty {
                        draft = message
                    } else {
                        last = ChatExchange(await conversation.transcript, prompt: message, answer: answer.text)
                    }
                } catch let failure as CommandFailure {
                    // Its reason does not concern the next message.
                    failure.say()
                    failed = failure
                }
            }
        }
        await saveKVCache(conversation)
        for server in servers { await server.close() }
        // The reasons are in standard error; a script learns of them from the exit code.
        if let failed, !isTerminal { throw CommandFailure(code: failed.code) }
    }

    /// Lets the next chat that continues this conversation start sooner.
    private func saveKVCache(_ conversation: Conversation) async {
        do { try await conversation.saveKVCache() } catch {
            let isSaved = await conversation.archiveProblem == nil
            let consequence = isSaved ? "The next start takes a little longer." : "The last answer is lost."
            Message.say("\(CommandFailure(error)) \(consequence)")
        }
    }

    // MARK: - The archive

    static var archiveFile: URL {
        let file = ModelStore.directory.deletingLastPathComponent().appending(path: "conversations.sqlite")
        // Files of older versions may be readable by others.
        for suffix in ["", "-wal", "-shm"] { chmod(file.path + suffix, 0o600) }
        return file
    }

    private func chosenName(_ archive: ConversationArchive) throws -> String {
        let known = try archive.conversations()
        if let resume {
            if resume == "last", let last = known.first { return last.id }
            guard known.contains(where: { $0.id == resume }) else {
                let names = known.isEmpty ? "none" : known.map(\.id).joined(separator: ", ")
                throw ValidationError("There is no conversation “\(resume)”. Saved: \(names).")
            }
            return resume
        }
        if let save, known.contains(where: { $0.id == save }) {
            throw ValidationError("A conversation “\(save)” already exists. Continue it with --resume \(save).")
        }
        return save ?? UUID().uuidString
    }

    /// Copies an unsaved conversation to the archive in the user's folder.
    ///
    /// - Returns: That archive; nil if it was not saved. The reason has been printed.
    private static func save(
        _ conversation: Conversation, in archive: ConversationArchive, as name: String
    ) async -> ConversationArchive? {
        if name.isEmpty {
            print("Give a name: /save NAME")
            return nil
        }
        do {
            try await conversation.save()
            let saved = try ConversationArchive(url: archiveFile)
            try archive.copy(conversation.id, to: saved, as: name)
            return saved
        } catch {
            CommandFailure(error).say()
            return nil
        }
    }

    private static func delete(_ name: String) throws {
        let archive = try ConversationArchive(url: archiveFile)
        guard try archive.conversations().contains(where: { $0.id == name }) else {
            throw ValidationError("There is no conversation “\(name)”. In “fm chat”, /saved lists them.")
        }
        try archive.delete(name)
        print("Deleted “\(name)”.")
    }

    private static func list() {
        let conversations: [ConversationArchive.Summary]
        do {
            // Looking does not create the archive.
            let exists = FileManager.default.fileExists(atPath: archiveFile.path)
            conversations = try exists ? ConversationArchive(url: archiveFile).conversations() : []
        } catch {
            return CommandFailure(error).say()
        }
        if conversations.isEmpty { print("There are no saved conversations. “fm chat --save NAME” saves one.") }
        let rows = conversations.map { [$0.id, "\($0.turnCount) turns", $0.title] }
        let table = TextTable([.left(minimum: 16), .right(), .left()], indentation: "  ", rows: rows)
        print(table.text(width: Terminal.columns(of: STDOUT_FILENO) ?? .max), terminator: "")
    }

    private func begin(
        _ name: String, _ archive: ConversationArchive, _ model: SystemLanguageModel, _ tools: [any Tool], _ isTerminal: Bool
    ) async throws -> Conversation {
        let tell: @Sendable (Compaction) -> Void = { record in if isTerminal { Self.tell(record) } }
        let conversation = try await Conversation(
            model: model, tools: tools, instructions: flags.instructions, archive: archive, id: name, onCompaction: tell)
        await conversation.prewarm()
        return conversation
    }

    /// Prints what a compaction did, in grey.
    @Sendable private static func tell(_ record: Compaction) {
        let turns = record.evictedTurns.count
        let text = "compacted: \(record.tokensBefore) → \(record.tokensAfter) tokens, \(turns) turns moved to the archive"
        // Numbers and fixed words: nothing in it controls the terminal.
        FileHandle.standardError.write(Data((Terminal.styled("(\(text))", .grey, on: STDERR_FILENO) + "\n").utf8))
    }

    // MARK: - Tools of servers

    /// Says which tools there are, and what they cost in every prompt.
    private static func tell(_ servers: [MCPTools], _ model: SystemLanguageModel, _ isTerminal: Bool) async throws {
        let tools = servers.flatMap(\.tools)
        if tools.isEmpty { return }
        let tokens = try await model.tokenCount(of: tools)
        if isTerminal { print("Tools: \(tools.map(\.name).joined(separator: ", ")) (\(tokens) tokens of each prompt).") }
        if 4 * tokens > model.contextSize {
            Message.say(
                "The tools take \(tokens) of \(model.contextSize) tokens in each prompt. Choose some with --mcp-tools.")
        }
    }

    /// Asks whether a call is made that may change something.
    @Sendable private static func allows(_ call: MCPTools.Call) async -> Bool {
        let warning = call.isDestructive ? " It may destroy something." : ""
        Message.say("\n\(call.server) wants to call \(call.tool) with \(call.arguments.jsonString).\(warning)")
        Message.say("Allow it? [y/N] ", terminator: "")
        TerminalEcho.show()
        defer { TerminalEcho.hide() }
        let answer = readLine()?.lowercased().trimmingCharacters(in: .whitespaces) ?? ""
        return answer == "y" || answer == "yes"
    }

    // MARK: - Commands

    /// - Returns: Whether it was done.
    private func command(_ line: String, _ conversation: Conversation) async -> Bool {
        let words = line.split(separator: " ", maxSplits: 1).map(String.init)
        let argument = words.count > 1 ? words[1].trimmingCharacters(in: .whitespaces) : ""
        do {
            switch words[0] {
            case "/context", "/tokens":
                try await conversation.report().writeTable()
            case "/recall":
                print(await conversation.lastRecall?.report ?? "There was no prompt yet.")
            case "/pin" where argument.isEmpty:
                let facts = await conversation.pinned
                print(facts.isEmpty ? "Nothing is pinned." : facts.map { "  \($0)" }.joined(separator: "\n"))
            case "/pin":
                try await conversation.pin(argument)
                print("Pinned.")
            case "/unpin":
                let isKnown = await conversation.pinned.contains(argument)
                await conversation.unpin(argument)
                print(isKnown ? "Unpinned." : "This fact is not pinned; /pin lists the pinned facts.")
            case "/compact":
                await conversation.compact()
                print("\(try await conversation.tokenCount()) of \(await conversation.contextSize) tokens are used.")
            default:
                Message.say("There is no command \(words[0]). /help lists them.")
                return false
            }
            return true
        } catch {
            CommandFailure(error).say()
            return false
        }
    }

    /// An answer, as far as it was written.
    private struct Answer {
        var text = ""
        var usage: LanguageModelSession.Usage?
        var isStopped = false
        /// Something else than the model ended it.
        var failure: CommandFailure?
    }

    /// Answers one message.
    ///
    /// - Throws: ``CommandFailure`` for a message that was not answered, and other errors if the next one would not be either.
    private func say(_ message: String, _ conversation: Conversation, _ isTerminal: Bool) async throws -> Answer {
        let options = flags.options
        let written = Mutex(Answer())
        let answer = Task {
            let output = Output()
            var count = 0
            var attempt = 1
            for try await snapshot in conversation.streamResponse(to: message, options: options) {
                if snapshot.attempt > attempt {
                    attempt = snapshot.attempt
                    count = 0
                    try output.write("\n(The context window was full. The answer starts again with a smaller context:)\n")
                }
                try output.write(Substring(snapshot.content.utf8.dropFirst(count)))
                count = snapshot.content.utf8.count
                written.withLock { $0 = Answer(text: snapshot.content, usage: snapshot.usage) }
            }
            try output.write("\n")
        }
        let interrupt = Interrupt { answer.cancel() }
        defer { interrupt.stop() }
        let result = await answer.result
        var whole = written.withLock { $0 }
        // What has been written has no line end.
        if case .failure = result, !whole.text.isEmpty { print("") }
        // A cancelled stream may end without an error.
        if interrupt.happened {
            whole.isStopped = true
            print(whole.text.isEmpty && isTerminal && !Terminal.isDumb ? "(stopped: Enter sends the message again)" : "(stopped)")
            return whole
        }
        do {
            try result.get()
            whole.failure = CommandFailure.ofEnd(whole.usage, limitMessage: flags.limitMessage())
            whole.failure?.say()
            if isTerminal, isatty(STDOUT_FILENO) == 1 {
                let report = try await conversation.report(detailedEntries: 0)
                try Output().writeStyled(Terminal.styled(report.bar(width: 24), .grey, on: STDOUT_FILENO) + "\n")
            }
            if let problem = await conversation.archiveProblem { Message.say("\(CommandFailure(problem))") }
            return whole
        } catch {
            // The next message would fail as well.
            if error is OutputError || error is SystemLanguageModel.Error { throw error }
            if case LanguageModelError.contextSizeExceeded(let context) = error {
                throw CommandFailure(
                    "The answer is longer than the window. \(context.debugDescription)", code: .promptTooLarge,
                    advice: "Ask for less, or use --max-tokens.")
            }
            throw CommandFailure(error)
        }
    }
}
