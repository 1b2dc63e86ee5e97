import Testing

/// Pages of many structures and their texts, which `Tests/Tools/compare_html.py` compares with those of another parser: the title, the
/// headings wherever they change, and the blocks, in which “⏎” is a line break.
struct HTMLPage: Sendable, CustomTestStringConvertible {
    let name: String
    let page: String
    let text: String

    init(_ name: String, _ page: String, _ text: String) { (self.name, self.page, self.text) = (name, page, text) }

    var testDescription: String { name }

    static let all = [
        HTMLPage(
            "named references of many alphabets",
            #"""
            <p>Mart&iacute;nez, Bj&ouml;rn &Aring;ngstr&ouml;m, Wa&lstrok;&eogon;sa, &Scaron;koda, &Omega;&mu;&eacute;ga, &Ccedil;a va&excl;</p>
            """#,
            #"""
            Martínez, Björn Ångström, Wałęsa, Škoda, Ωμéga, Ça va!
            """#),
        HTMLPage(
            "references without a semicolon, and names that begin with others",
            #"""
            <p>&eacutet&eacute, &notit; &notin; &ampamp; &AMP &copy2024 &unknown; &alpha &sup2; &sup2 &; & &lt</p>
            """#,
            #"""
            été, ¬it; ∉ &amp; & ©2024 &unknown; &alpha ² ² &; & <
            """#),
        HTMLPage(
            "numbers: windows-1252, out of range, surrogates, without digits",
            #"""
            <p>&#128; &#x93;x&#x94; &#150; &#xD800; &#x110000; &#99999999999; &#0; &#65 &#x42, &#; &#x; &#xZ; &#129;.</p>
            """#,
            "€ “x” – \u{FFFD} \u{FFFD} \u{FFFD} \u{FFFD} A B, &#; &#x; &#xZ; \u{81}."),
        HTMLPage(
            "references in attributes",
            #"""
            <p><a href="?a=1&copy=2&reg" title="&quot;>">link</a> <img alt="caf&eacute; &amp; bar &copy=1 &ltx"></p>
            """#,
            #"""
            link café & bar &copy=1 &ltx
            """#),
        HTMLPage(
            "soft hyphens, word breaks, spaces that do not break",
            #"""
            <p>Donau&shy;dampf&#173;schiff<wbr>fahrt 10&nbsp;&nbsp;km&NewLine;long&Tab;and wide</p>
            """#,
            #"""
            Donaudampfschifffahrt 10 km long and wide
            """#),
        HTMLPage(
            "title, scripts and styles",
            #"""
            <!DOCTYPE html><html><head><title>A &amp; B
            <b>C</b></title><style>p > a { color: red }</style><script>if (a < b) { alert("<p>no</p>") }</script>
            <meta name=description content="<p>no">
            </head><body><p>Text.</p><script type="text/x">"</scrip>" </p></script>More.</body></html>
            """#,
            #"""
            title: A & B <b>C</b>
            Text.
            More.
            """#),
        HTMLPage(
            "scripts in scripts",
            #"""
            <script><!-- document.write("<script>a</script>"); --></script><p>one<script><!-- if (a) </script><p>two
            <script>var s = "<!-- <script>"; </script> --> </script><p>three
            """#,
            #"""
            one
            two
            three
            """#),
        HTMLPage(
            "comments of all kinds",
            #"""
            a<!-- <p>no --> b<!--> c<!---> d<!-- -- no --!> e<!-- no -- > no --> f<!no> g<?no?> h</ no> i</> j<!---->k
            <!-- without an end <p>no
            """#,
            #"""
            a b c d e f g h i jk
            """#),
        HTMLPage(
            "sections are comments, but not in MathML",
            #"""
            <p>a<![CDATA[no]]> b <math><mtext>x</mtext><ms><![CDATA[1 < 2]]></ms><![CDATA[ & c]]></math></p>
            """#,
            #"""
            a b x1 < 2 & c
            """#),
        HTMLPage(
            "attributes with quotes and angle brackets",
            #"""
            <p title="a > b" data-x='</p>'>one <a href=x.html?a>b</a> <b/class=c"d>bold</b> <i a = "1"b='2' c>it</i>
            <p hidden = "">no</p><p class="x>y"
            id='z'>two</p>
            """#,
            #"""
            one b bold it
            two
            """#),
        HTMLPage(
            "paragraphs and items without ends",
            #"""
            <p>one<p>two<ul><li>first<li>second <b>bold<li>third</ul>after<p>last<h2>Heading</h2>text<dl><dt>term<dd>sense<dt>other<dd>more</dl>
            """#,
            #"""
            title: Heading
            one
            two
            first
            second bold
            third
            after
            last
            [Heading]
            text
            term
            sense
            other
            more
            """#),
        HTMLPage(
            "lists in lists",
            #"""
            <ol><li>one<ul><li>a<ol><li>i<li>ii</ol><li>b</ul>after b<li><p>two</p><p>still two</p></ol>
            """#,
            #"""
            one
            a
            i
            ii
            b
            after b
            two
            still two
            """#),
        HTMLPage(
            "headings and their levels",
            #"""
            <h1>Guide</h1><p>Intro<h2>First <em>part</em></h2><p>a<h3>Detail</h3>b<h2>Second<br>part</h2><h2>Empty</h2><h1>Other</h1>c<h2><div>In</div>
            <div>blocks</div></h2>
            """#,
            #"""
            title: Guide
            [Guide]
            Intro
            [Guide › First part]
            a
            [Guide › First part › Detail]
            b
            [Guide]
            Second part
            Empty
            [Other]
            c
            In blocks
            """#),
        HTMLPage(
            "headings that are not closed, or closed by others",
            #"""
            <h1>One<h2>Two</h1>text<h2>Three</h3>more<div><h3>Four</div>rest
            """#,
            #"""
            title: One
            [One › Two]
            text
            [One › Three]
            more
            [One › Three › Four]
            rest
            """#),
        HTMLPage(
            "a table of values, with empty cells",
            #"""
            <table><caption>Prices</caption><thead><tr><th>Item<th>2023<th>2024</thead><tbody>
            <tr><td>Bread<td><td>2.10<tr><td></td><td>&nbsp;</td><td></td></tr><tr><td>Milk</td><td> 1.05 </td><td></td></tr></tbody></table>after
            """#,
            #"""
            Prices
            | Item | 2023 | 2024 |
            | Bread | | 2.10 |
            | Milk | 1.05 | |
            after
            """#),
        HTMLPage(
            "cells with several lines",
            #"""
            <table><tr><td>Opening<br>hours</td><td><p>Monday</p><p>9 to 5</p></td><td><ul><li>a<li>b</ul></td></tr></table>
            """#,
            #"""
            | Opening hours | Monday 9 to 5 | a b |
            """#),
        HTMLPage(
            "tables in tables",
            #"""
            <table><tr><td>left<td><table><tr><td>a<td>b<tr><td>c<td>d</table>below<td>right</table><p>after
            """#,
            #"""
            left
            | a | b |
            | c | d |
            below
            right
            after
            """#),
        HTMLPage(
            "a page laid out with a table",
            #"""
            <table role="presentation"><tr><td>Menu</td><td><p>One.</p><p>Two.</p></td></tr></table>
            <table><tr><td><a href=a>Home</a><td><h1>Story</h1><p>Text.<p>More.</table>
            <table><tr><td><p>Only</p><p>cell</p></td></tr></table>
            """#,
            #"""
            title: Story
            Menu
            One.
            Two.
            Home
            [Story]
            Text.
            More.
            Only cell
            """#),
        HTMLPage(
            "code in a table stays as it is",
            #"""
            <table><tr><td><pre>1
            2</pre></td><td><pre>if a:
                b()</pre></td></tr></table>
            """#,
            #"""
            1⏎2
            if a:⏎    b()
            """#),
        HTMLPage(
            "tables without rows, cells and ends",
            #"""
            <table><td>a<td>b</tr><td>c<th>d<tbody><td>e<td>f<table><tr><td>g<td>h</table></td></tr></table><tr><td>no table<table><tr>
            """#,
            #"""
            | a | b |
            | c | d |
            e
            f
            | g | h |
            no table
            """#),
        HTMLPage(
            "hidden parts",
            #"""
            <p>a<span hidden>no</span> b<span style="display:none">no</span> c<span style="COLOR:red; Visibility : Hidden !important">no</span> d</p>
            <div aria-hidden="true">no<p>no<ul><li>no</div><div hidden="until-found">e</div><div style="display:none;display:block">f</div>
            <template><p>no</p></template><datalist><option>no</datalist><dialog>no</dialog><dialog open>g</dialog><p hidden>no<p>h<img alt=no hidden>
            <table><tr><td>i<td hidden>no<td>j<tr hidden><td>no<td>no</table><input type=hidden alt=no>k<noscript>no</noscript>
            """#,
            #"""
            a b c d
            e
            f
            g
            h
            | i | j |
            k
            """#),
        HTMLPage(
            "hidden parts with wrong ends",
            #"""
            <div hidden><p>no</span></b></li>no<b>no</div>a<span hidden>no<div>no</span>no</div>no</span>b
            <p><b style="display:none">no<i>no</b>c</i></p><div hidden><div>no</div>no<table><tr><td>no</div>no</table>no</div>d
            """#,
            #"""
            ab
            c
            d
            """#),
        HTMLPage(
            "elements that overlap",
            #"""
            <p><b>bold <i>both</b> italic</i> plain</p><b><p>in bold</b> not</p><a href=x><div>block</div>link</a> <i><h2>Head</i> ing</h2>end
            """#,
            #"""
            title: Head ing
            bold both italic plain
            in bold not
            block
            link
            [Head ing]
            end
            """#),
        HTMLPage(
            "pictures",
            #"""
            <p>Before<img src=a.png alt="A map of the town">after, <img src=b.png alt=""><img src=c.png>and <a href=x><img alt='Home page'></a>.
            <figure><img alt="Chart"><figcaption>Figure 1</figcaption></figure><input type=image alt=Go><area alt=no>
            """#,
            #"""
            Before A map of the town after, and Home page .
            Chart
            Figure 1
            Go
            """#),
        HTMLPage(
            "preformatted text",
            #"""
            <pre>

              first  line
            	tab &lt;b&gt; <b>bold</b>

            last   </pre>x<pre>a&#10;b<br>c</pre><listing>d
              e</listing><xmp><b>not &amp; bold</b>
             x</xmp>
            """#,
            "  first  line⏎\ttab <b> bold⏎⏎last\nx\na⏎b⏎c\nd⏎  e\n<b>not &amp; bold</b>⏎ x"),
        HTMLPage(
            "line breaks and rules",
            #"""
            <p>one <br> two<br/>three</br>four<hr>five<br><br>six<br></p>
            """#,
            #"""
            one⏎two⏎three⏎four
            five⏎⏎six
            """#),
        HTMLPage(
            "spaces between and in elements",
            #"""
            <div>  a  <b> b </b>  c  </div>d<span>e</span><div>f</div><my-element>g</my-element>h <x-y>i</x-y>
            <div><div></div> <p> </p>j</div>
            """#,
            #"""
            a b c
            de
            f
            gh i
            j
            """#),
        HTMLPage(
            "forms",
            #"""
            <form><label>Name <input name=a value=no></label><select><option>red<option selected>blue<optgroup label=x><option>green</select>
            <form><button>Send</button>now<textarea rows=2>
            &lt;b&gt; <b>
             x</textarea>after</form><fieldset><legend>Legend</legend>text</fieldset>
            """#,
            #"""
            Name
            red
            blue
            green
            Send now <b> <b>⏎ x after
            Legend
            text
            """#),
        HTMLPage(
            "pictures and formulas in the page",
            #"""
            <p>a<svg viewBox="0 0 1 1"><title>no</title><text>no</text><foreignObject><div>no<p>no</div></foreignObject></svg>b
            <math><mi>x</mi><mo>=</mo><mn>1</mn><semantics><mrow></mrow><annotation>no</annotation></semantics></math>c<svg/>d<svg><g><p>e</svg>f
            """#,
            #"""
            ab x=1cd
            ef
            """#),
        HTMLPage(
            "a page of scripts only",
            #"""
            <!doctype html><title>App</title><body><div id=root></div><noscript>You need scripts.</noscript><script src=a.js></script>
            """#,
            #"""
            title: App
            """#),
        HTMLPage(
            "no markup, and marks that are none",
            #"""
            5 < 6 & a<1 <-- <> << 7 > 3, R&D &c; "q" <3
            """#,
            #"""
            5 < 6 & a<1 <-- <> << 7 > 3, R&D &c; "q" <3
            """#),
        HTMLPage(
            "cut off in a tag",
            #"""
            <p>one <b>two</b> three <a href="x
            """#,
            #"""
            one two three
            """#),
        HTMLPage(
            "an article with all sections",
            #"""
            <body><header><nav><ul><li><a href=/>Home</a><li><a href=/b>About</a></ul></nav></header><main><article><hgroup><h1>News</h1><p>Sub</p></hgroup>
            <section><h2>Part</h2><blockquote><p>Quote.</p><cite>Source</cite></blockquote><aside>Note</aside></section></article></main><footer><address>Street 1</address>
            <details><summary>More</summary>Hidden until opened</details></footer></body></html>trailing
            """#,
            #"""
            title: News
            Home
            About
            [News]
            Sub
            [News › Part]
            Quote.
            Source
            Note
            Street 1
            More
            Hidden until opened
            trailing
            """#),
        HTMLPage(
            "ruby, marks and other elements in lines",
            #"""
            <p><ruby>漢<rp>(</rp><rt>kan</rt><rp>)</rp></ruby> H<sub>2</sub>O <mark>m</mark><del>old</del><ins>new</ins> <q>said</q> <time>9:00</time>
            <abbr title=no>HTML</abbr>, <u>u</u><big>B</big><font color=red>F</font>
            """#,
            #"""
            漢(kan) H2O moldnew said 9:00 HTML, uBF
            """#),
        HTMLPage(
            "old elements and frames",
            #"""
            <center>Centre</center><dir><li>item</dir><marquee>news</marquee><nobr>no break</nobr><iframe src=x><p>no</iframe><noframes>no</noframes>
            <object data=x>in <b>place</b></object><video><p>no</p></video><audio>no</audio><canvas>no</canvas>end
            """#,
            #"""
            Centre
            item
            newsno break in place end
            """#),
    ]
}
