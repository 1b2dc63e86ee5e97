extension GuardrailProbe {
    static let all: [GuardrailProbe] = []
}
