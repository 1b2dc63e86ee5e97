import Foundation
import FoundationModels

protocol P: Generable {}

@Generable
struct Types {
    var a: [String: Int]
    // expected-error@-1:12 {{'[String: Int]' cannot be generated; use an array of a '@Generable' struct}}
    var b: Dictionary<String, Int>?
    // expected-error@-1:12 {{'Dictionary<String, Int>' cannot be generated; use an array of a '@Generable' struct}}
    var c: (Int, String)
    // expected-error@-1:12 {{'(Int, String)' cannot be generated; use a '@Generable' struct.}}
    var d: ((Int) -> Void)?
    // expected-error@-1:13 {{'(Int) -> Void' cannot be generated; use a '@Generable' type.}}
    var e: any P
    // expected-error@-1:12 {{'any P' cannot be generated; use a '@Generable' enum}}
    var f: (any P)?
    // expected-error@-1:13 {{'any P' cannot be generated; use a '@Generable' enum}}
    var g: Set<String>
    // expected-error@-1:12 {{'Set<String>' cannot be generated; use '[String]'.}}
    // expected-note@-2:12 {{Use '[String]'}} {{12-23=[String]}}
    var h: [Set<Int>]
    // expected-error@-1:13 {{'Set<Int>' cannot be generated; use '[Int]'.}}
    // expected-note@-2:13 {{Use '[Int]'}} {{13-21=[Int]}}
    var i: Date
    // expected-error@-1:12 {{'Date' cannot be generated; use 'String'.}}
    // expected-note@-2:12 {{Use 'String'}} {{12-16=String}}
    var j: [URL]?
    // expected-error@-1:13 {{'URL' cannot be generated; use 'String'.}}
    // expected-note@-2:13 {{Use 'String'}} {{13-16=String}}
    var k: UUID  // a comment
    // expected-error@-1:12 {{'UUID' cannot be generated; use 'String'.}}
    // expected-note@-2:12 {{Use 'String'}} {{12-16=String}}
    var l: Data
    // expected-error@-1:12 {{'Data' cannot be generated; use 'String'.}}
    // expected-note@-2:12 {{Use 'String'}} {{12-16=String}}
    var m: Int32
    // expected-error@-1:12 {{'Int32' cannot be generated; use 'Int'.}}
    // expected-note@-2:12 {{Use 'Int'}} {{12-17=Int}}
    var n: UInt8?, o: CGFloat
    // expected-error@-1:12 {{'UInt8' cannot be generated; use 'Int'.}}
    // expected-note@-2:12 {{Use 'Int'}} {{12-17=Int}}
    // expected-error@-3:23 {{'CGFloat' cannot be generated; use 'Double'.}}
    // expected-note@-4:23 {{Use 'Double'}} {{23-30=Double}}
    var p: Int??
    // expected-error@-1:12 {{'Int?' cannot be generated; use a single optional.}}
    var q: [Int?]
    // expected-error@-1:12 {{'[Int?]' cannot be generated; use an array without optional elements.}}
    // expected-note@-2:12 {{Use '[Int]'}} {{12-18=[Int]}}
    var r: Int.Type
    // expected-error@-1:12 {{'Int.Type' cannot be generated; use a '@Generable' type.}}
    var s: any P & Sendable
    // expected-error@-1:12 {{'any P & Sendable' cannot be generated; use a '@Generable' enum}}
    var t: Any
    // expected-error@-1:12 {{'Any' cannot be generated; use a '@Generable' type.}}
    var ok: [[String]]?
}

@Generable
enum PayloadTypes {
    case a(Int, date: Date)
    // expected-error@-1:23 {{'Date' cannot be generated; use 'String'.}}
    // expected-note@-2:23 {{Use 'String'}} {{23-27=String}}
    case b([String: Int], (Int, Int)?)
    // expected-error@-1:12 {{'[String: Int]' cannot be generated; use an array of a '@Generable' struct}}
    // expected-error@-2:27 {{'(Int, Int)' cannot be generated; use a '@Generable' struct.}}
}
