/// Makes a structure or an enumeration ``Generable``. Properties are generated in the order of their declarations.
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
/// - Parameter description: A description of the type for the model.
@attached(extension, conformances: Generable, names: named(init(_:)), named(generatedContent))
@attached(member, names: arbitrary)
public macro Generable(description: String? = nil) =
    #externalMacro(module: "FoundationModelsMacros", type: "GenerableMacro")

/// Makes a structure or an enumeration ``Generable``.
///
/// - Parameters:
///   - description: A description of the type for the model.
///   - representNilExplicitlyInGeneratedContent: Whether missing values are null instead of omitted.
@attached(extension, conformances: Generable, names: named(init(_:)), named(generatedContent))
@attached(member, names: arbitrary)
public macro Generable(description: String? = nil, representNilExplicitlyInGeneratedContent: Bool) =
    #externalMacro(module: "FoundationModelsMacros", type: "GenerableMacro")

/// Makes a structure or an enumeration ``Generable``.
///
/// - Parameters:
///   - name: The name of the type for the model, instead of its Swift name.
///   - description: A description of the type for the model.
///   - representNilExplicitlyInGeneratedContent: Whether missing values are null instead of omitted.
@attached(extension, conformances: Generable, names: named(init(_:)), named(generatedContent))
@attached(member, names: arbitrary)
public macro Generable(
    name: String, description: String? = nil, representNilExplicitlyInGeneratedContent: Bool = false
) = #externalMacro(module: "FoundationModelsMacros", type: "GenerableMacro")

/// Describes a property for the model and constrains its values.
@attached(peer)
public macro Guide<T>(description: String? = nil, _ guides: GenerationGuide<T>...) =
    #externalMacro(module: "FoundationModelsMacros", type: "GuideMacro") where T: Generable

/// Describes a string property for the model and requires the whole string to match a regular expression.
@attached(peer)
public macro Guide<RegexOutput>(description: String? = nil, _ guides: Regex<RegexOutput>) =
    #externalMacro(module: "FoundationModelsMacros", type: "GuideMacro")

/// Describes a property for the model.
@attached(peer)
public macro Guide(description: String) = #externalMacro(module: "FoundationModelsMacros", type: "GuideMacro")
