public import Foundation
internal import InstalledModels
public import MCP

extension ModelServer {
    /// What a server serves, to whom, and how much of it.
    public struct Configuration: Sendable {
        // MARK: The address

        /// The interface to listen on. Only this machine reaches the default one.
        public var host = "127.0.0.1"
        /// The port; 0 for one that the system chooses.
        public var port = 8080
        /// The path of a Unix socket to listen on instead.
        public var socket: String?

        // MARK: Models

        /// The models to serve, by name or file; empty for all that are installed.
        public var models: [String] = []
        /// Other names of models, such as `gpt-4o`.
        public var aliases: [String: String] = [:]
        /// The maximum number of tokens of a prompt and its answer.
        public var contextSize = 4_096
        /// Seconds after which models that nobody uses are freed; nil to keep them as long as there is room.
        public var idleSeconds: Int?
        /// Whether prompts and answers are checked as those of the framework's sessions are.
        public var hasGuardrails = false

        /// Tools that are offered at `/mcp` to clients of the Model Context Protocol; nil for none.
        public var tools: MCPServer?

        // MARK: The console

        /// Whether there is a console for people at `/`.
        public var hasConsole = true
        /// Servers whose tools people can let models use in the console. Their own approval is asked for in the page.
        public var consoleTools: [MCPTools] = []
        /// Answers questions from documents, in the console; nil if there are none.
        public var documents: (@Sendable (_ question: String) async throws -> DocumentAnswer)?

        // MARK: Other servers

        /// Base addresses of servers with OpenAI's API that run the models, such as `http://10.0.0.1:8000/v1`; empty if this one does.
        public var upstreams: [String] = []
        /// The key that these servers want; those of clients are not passed on.
        public var upstreamKey: String?
        /// Seconds without data after which one of them counts as failed.
        public var upstreamSilenceSeconds = 60

        // MARK: Clients

        /// The keys of clients; empty to serve everybody who reaches the server.
        public var keys: [APIKey] = []
        /// Further names of this server that requests may name.
        public var hosts: Set<String> = []
        /// Origins whose pages may use the server; empty for none but its own.
        public var origins: Set<String> = []
        /// Whether clients of different keys share no computed prompts.
        public var isolatesKeys = false

        // MARK: Limits

        /// Requests that are processed at the same time.
        public var parallelRequests = 8
        /// Requests that may wait for their turn.
        public var waitingRequests = 64
        /// Seconds that a request waits for its turn.
        public var maximumWaitSeconds = 120
        /// Seconds that a request may take, once its turn has come.
        public var maximumRequestSeconds = 900
        /// Bytes of a body, compressed or not.
        public var maximumBodyBytes = 8 << 20
        /// Seconds in which a body must come.
        public var maximumBodySeconds = 30
        /// Seconds without a request after which a connection is closed, and without reading after which one that is written to is.
        public var idleConnectionSeconds = 60
        /// Connections at the same time.
        public var maximumConnections = 512
        /// Seconds that running requests have when the server ends.
        public var shutdownSeconds = 30

        // MARK: Records

        /// Whether prompts and answers are written to the log.
        public var logsContent = false
        /// Where responses and conversations are kept; nil for memory.
        public var store: URL?
        /// How to connect to a PostgreSQL server that keeps them instead, as libpq documents: `postgresql://user@host/database`. Servers
        /// with the same one serve each other's clients.
        public var postgreSQL: String?
        /// Days for which responses are kept. Conversations are kept until they are deleted.
        public var responseDays = 30
        /// The maximum number of responses of a client that are kept; the oldest ones are deleted first, but for those that others continue.
        public var maximumResponses = 10_000

        /// Creates a configuration with the defaults.
        public init() {}
    }
}

extension ModelServer {
    /// An answer from documents, whose text has numbers in brackets for what it cites.
    public struct DocumentAnswer: Sendable {
        /// A passage that the answer cites.
        public struct Citation: Sendable {
            /// The number in the text.
            public var number: Int
            /// The document.
            public var source: String
            /// Where in the document.
            public var lines: String
            /// The passage.
            public var text: String

            /// Creates a citation.
            public init(number: Int, source: String, lines: String, text: String) {
                (self.number, self.source, self.lines, self.text) = (number, source, lines, text)
            }
        }

        /// The answer.
        public var text: String
        /// What it cites.
        public var citations: [Citation]

        /// Creates an answer.
        public init(text: String, citations: [Citation]) { (self.text, self.citations) = (text, citations) }
    }

    /// Whether a host is one of this machine's own, which no other machine reaches.
    public static func isLoopback(_ host: String) -> Bool { OriginRules.isLoopback(OriginRules.name(of: host)) }

    /// Where responses are kept beside the models of this user.
    public static var standardStore: URL { ModelFolder.standard.root.appending(path: "server.sqlite") }
}
