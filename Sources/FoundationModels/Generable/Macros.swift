/// Makes a structure or an enumeration ``Generable``: its properties are generated in the order in which they are declared.
///
/// ```swift
/// @Generable
/// struct Recipe {
///     @Guide(description: "What it is called")
///     var title: String
///     @Guide(.count(3...8))
///     var steps: [String]
///     var minutes: Int?
/// }
/// ```
///
/// - Parameter description: What the model is told about the type.
@attached(extension, conformances: Generable, names: named(init(_:)), named(generatedContent))
@attached(member, names: arbitrary)
public macro Generable(description: String? = nil) =
    #externalMacro(module: "FoundationModelsMacros", type: "GenerableMacro")

/// Makes a structure or an enumeration ``Generable``.
///
/// - Parameters:
///   - description: What the model is told about the type.
///   - representNilExplicitlyInGeneratedContent: Whether missing values are null rather than left out.
@attached(extension, conformances: Generable, names: named(init(_:)), named(generatedContent))
@attached(member, names: arbitrary)
public macro Generable(description: String? = nil, representNilExplicitlyInGeneratedContent: Bool) =
    #externalMacro(module: "FoundationModelsMacros", type: "GenerableMacro")

/// Makes a structure or an enumeration ``Generable``.
///
/// - Parameters:
///   - name: What the model knows the type as, instead of its Swift name.
///   - description: What the model is told about the type.
///   - representNilExplicitlyInGeneratedContent: Whether missing values are null rather than left out.
@attached(extension, conformances: Generable, names: named(init(_:)), named(generatedContent))
@attached(member, names: arbitrary)
public macro Generable(
    name: String, description: String? = nil, representNilExplicitlyInGeneratedContent: Bool = false
) = #externalMacro(module: "FoundationModelsMacros", type: "GenerableMacro")

/// Tells the model about a property, and limits its values.
@attached(peer)
public macro Guide<T>(description: String? = nil, _ guides: GenerationGuide<T>...) =
    #externalMacro(module: "FoundationModelsMacros", type: "GuideMacro") where T: Generable

/// Tells the model about a text, and has the whole of it match a regular expression.
@attached(peer)
public macro Guide<RegexOutput>(description: String? = nil, _ guides: Regex<RegexOutput>) =
    #externalMacro(module: "FoundationModelsMacros", type: "GuideMacro")

/// Tells the model about a property.
@attached(peer)
public macro Guide(description: String) = #externalMacro(module: "FoundationModelsMacros", type: "GuideMacro")
