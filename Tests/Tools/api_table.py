#!/usr/bin/env python3
"""api_table.py GRAPH_DIR [options]  > table.tsv

One line per public symbol:       KIND <TAB> path.of.symbol <TAB> declaration
one line per conformance:         conformance <TAB> Type <TAB> Protocol [where ...]
Reads every *.symbols.json in GRAPH_DIR and, when present, GRAPH_DIR/digest.json
(swift-api-digester -dump-sdk), which adds information that symbol graphs do not contain:
@_disfavoredOverload, the actual setter access, inferred associated types.

  --nonsending-default  the module was built with NonisolatedNonsendingByDefault:
                        print nonisolated(nonsending) on plain async declarations
  --loose               omit internal parameter names and print default arguments
                        as `= …`
  --usr                 add the mangled name (USR) as a fourth column
  --no-digest           ignore digest.json
  --undocumented        print only the symbols of the module that have no doc comment
"""
import argparse, glob, json, os, re, subprocess, sys

ap = argparse.ArgumentParser()
ap.add_argument('graph')
for o in ('--nonsending-default', '--loose', '--usr', '--no-digest', '--undocumented'):
    ap.add_argument(o, action='store_true')
opt = ap.parse_args()

IMPLIED = {'Copyable', 'Escapable', 'BitwiseCopyable', 'SendableMetatype'}
REFINES = {'Hashable': ['Equatable'], 'Comparable': ['Equatable'], 'Strideable': ['Comparable'],
           'Error': ['Sendable'], 'LocalizedError': ['Error'], 'Collection': ['Sequence'],
           'BidirectionalCollection': ['Collection'], 'RandomAccessCollection': ['BidirectionalCollection'],
           'MutableCollection': ['Collection'], 'RangeReplaceableCollection': ['Collection']}
# associated type witnesses: printed from the digest (it also has the inferred ones)
WITNESS = {'Element', 'Index', 'Indices', 'Iterator', 'SubSequence', 'Stride', 'ID', 'ArrayLiteralElement',
           'AsyncIterator', 'Failure', 'RawValue', 'AllCases', 'Body', 'Model', 'Configuration', 'Executor',
           'PartiallyGenerated', 'Arguments', 'Output', 'Value'}
WITNESS_DROP = {'RawValue', 'AllCases', 'Body', 'Failure'}
MODULE = re.compile(r'\b(?:FoundationModels|Swift|Foundation|FoundationEssentials|FoundationInternationalization|'
                    r'_Concurrency|Observation|_StringProcessing)\.(?=[A-Z_`])')
DROP_NAMES = {'hash(into:)', 'hashValue', 'init(from:)', 'encode(to:)', 'allCases'}
DROP_MODIFIERS = {'public', 'open', 'package', 'convenience', 'required', 'override', 'dynamic', 'lazy', 'weak',
                  'nonisolated', 'nonisolated(unsafe)', 'private(set)', 'fileprivate(set)', 'internal(set)',
                  'package(set)', 'public(set)', 'indirect'}
KEEP_ATTRIBUTES = {'@discardableResult', '@resultBuilder', '@propertyWrapper', '@concurrent', '@attached',
                   '@freestanding', '@dynamicMemberLookup', '@dynamicCallable', '@globalActor'}
INTRODUCER = {'func', 'var', 'let', 'init', 'init?', 'init!', 'subscript', 'struct', 'class', 'enum', 'protocol', 'actor', 'case',
              'typealias', 'associatedtype', 'macro', 'deinit', 'operator', 'extension'}

WITNESSES = {'Element', 'Index', 'Indices', 'Iterator', 'SubSequence', 'Stride', 'ID', 'ArrayLiteralElement', 'startIndex',
             'endIndex', 'id', 'description', 'debugDescription', 'errorDescription', 'recoverySuggestion', 'failureReason'}

# ------------------------------------------------------------------ input
graphs = [json.load(open(f)) for f in sorted(glob.glob(os.path.join(opt.graph, '*.symbols.json')))]
if not graphs:
    sys.exit('no *.symbols.json in ' + opt.graph)
symbols = [s for g in graphs for s in g['symbols']]
relations = [r for g in graphs for r in g['relationships']]
real = [s for s in symbols if '::SYNTHESIZED::' not in s['identifier']['precise']]
if opt.undocumented:
    for s in real:
        # witnesses of other modules' protocols and underscored names are documented elsewhere or not at all
        if 'docComment' in s or any(n.startswith('_') for n in s['pathComponents']) or s['pathComponents'][-1] in WITNESSES:
            continue
        print('.'.join(s['pathComponents']))
    sys.exit()
by_usr = {s['identifier']['precise']: s for s in real}
path_of = {u: '.'.join(s['pathComponents']) for u, s in by_usr.items()}
kind_of = lambda s: s['kind']['identifier'].replace('swift.', '')
TYPES = {'struct', 'class', 'enum', 'protocol', 'actor'}
type_by_path = {'.'.join(s['pathComponents']): s for s in real if kind_of(s) in TYPES}

digest, digest_aliases = {}, []
digest_file = os.path.join(opt.graph, 'digest.json')
if os.path.exists(digest_file) and not opt.no_digest:
    def walk(n, path):
        if n.get('usr') and n.get('declKind') not in (None, 'Accessor'):
            digest[n['usr']] = n
        here = path + [n['name']] if n.get('declKind') in ('Struct', 'Class', 'Enum', 'Protocol') else path
        if n.get('declKind') == 'TypeAlias':
            digest_aliases.append(('.'.join(path + [n['name']]), n['children'][0]['printedName'], n))
        for c in n.get('children', []):
            walk(c, here)
    walk(json.load(open(digest_file))['ABIRoot'], [])

def squeeze(t):
    return re.sub(r'\s+', ' ', t).strip()

def underscored(path):
    return any(c.startswith('_') for c in path)

# ------------------------------------------------------------------ demangling of external types
def demangle(usrs):
    usrs = sorted(usrs)
    if not usrs:
        return {}
    out = subprocess.run(['swift', 'demangle', '-compact'] + ['$s' + u[2:] for u in usrs],
                         capture_output=True, text=True).stdout.split('\n')
    return {u: MODULE.sub('', o.strip()) for u, o in zip(usrs, out)}

unknown = set()
for r in relations:
    if r['kind'] == 'conformsTo':
        for k in ('source', 'target'):
            if r[k] not in path_of and r[k].startswith('s:') and (k == 'source' or not r.get('targetFallback')):
                unknown.add(r[k])
external = demangle(unknown)

def name_of(usr, fallback=None):
    return path_of.get(usr) or (MODULE.sub('', fallback) if fallback else None) or external.get(usr, usr)

# ------------------------------------------------------------------ constraints
def constraint(c):
    return squeeze('%s %s %s' % (c['lhs'], '==' if c['kind'] == 'sameType' else ':', MODULE.sub('', c['rhs'])))

def own_constraints(path):
    """constraints of a type and its enclosing types, which an extension repeats"""
    out, parts = set(), path.split('.')
    for i in range(1, len(parts) + 1):
        s = type_by_path.get('.'.join(parts[:i]))
        if s:
            out |= {constraint(c) for c in s.get('swiftGenerics', {}).get('constraints', [])}
            if kind_of(s) == 'protocol':
                out.add('Self : ' + '.'.join(parts[:i]))
                out.add('Self : ' + parts[i - 1])
    return out

def extension_where(constraints, path):
    cs = {constraint(c) for c in constraints}
    cs = {c for c in cs if not c.endswith(tuple(': ' + i for i in IMPLIED))}
    return sorted(cs - own_constraints(path))

# ------------------------------------------------------------------ names used inside declarations
def written_type(path):
    """Attachment -> Attachment<Content>"""
    out, parts = [], path.split('.')
    seen = 0
    for i in range(1, len(parts) + 1):
        s = type_by_path.get('.'.join(parts[:i]))
        ps = [p['name'] for p in (s or {}).get('swiftGenerics', {}).get('parameters', []) if kind_of(s) != 'protocol']
        new, seen = ps[seen:], max(seen, len(ps))
        out.append(parts[i - 1] + ('<%s>' % ', '.join(new) if new else ''))
    return '.'.join(out)

def build_aliases():
    """module typealiases of concrete, non generic types -> their target: Transcript.Index -> Int"""
    al = {'String.PartiallyGenerated': 'String'}
    found = [('.'.join(s['pathComponents']), squeeze(''.join(f['spelling'] for f in s['declarationFragments'])).partition(' = ')[2])
             for s in real if kind_of(s) == 'typealias' and not s.get('swiftGenerics')]
    found += [(p, t) for p, t, _ in digest_aliases]
    for p, t in found:
        parent, _, name = p.rpartition('.')
        ps = type_by_path.get(parent)
        if name in WITNESS and ps and kind_of(ps) != 'protocol' and not ps.get('swiftGenerics') and 'some ' not in t:
            al[p] = MODULE.sub('', t)
    return al
ALIASES = build_aliases()

def resolve(t):
    t = MODULE.sub('', t)
    for _ in range(3):
        new = t
        for a, target in ALIASES.items():
            new = re.sub(r'(?<![\w.])' + re.escape(a) + r'(?![\w.(])', lambda m: target, new)
        if new == t:
            break
        t = new
    return t

# ------------------------------------------------------------------ declarations
def tokens_before_introducer(t):
    """split leading attributes and modifiers off: ([...], rest)"""
    lead = []
    while True:
        m = re.match(r'(@?[\w.]+[?!]?)', t)
        if not m:
            return lead, t
        word = m.group(1)
        if word in INTRODUCER and not (word == 'class' and re.match(r'class\s+(func|var|subscript)\b', t)):
            return lead, t
        end = m.end()
        if t[end:end + 1] == '(':
            d = 0
            for i in range(end, len(t)):
                d += (t[i] == '(') - (t[i] == ')')
                if d == 0:
                    break
            end = i + 1
        lead.append(t[:end])
        t = t[end:].lstrip()

def behind_parameters(t):
    """the part of a declaration after the parameter list of a function"""
    d = 0
    for i in range(t.find('('), len(t)):
        d += (t[i] == '(') - (t[i] == ')')
        if d == 0:
            return t[i + 1:]
    return ''

def deprecated(s):
    return any(a.get('isUnconditionallyDeprecated') or a.get('deprecated') for a in s.get('availability', []))
deprecated_types = {p for p, s in type_by_path.items() if deprecated(s)}

def declaration(s):
    kind, path = kind_of(s), s['pathComponents']
    parent = '.'.join(path[:-1])
    frags = s['declarationFragments']
    if opt.loose:
        out = []
        for i, f in enumerate(frags):
            if f['kind'] == 'internalParam':
                if out and out[-1].endswith(' '):
                    out[-1] = out[-1].rstrip(' ')
                continue
            out.append(f['spelling'])
        t = squeeze(''.join(out))
    else:
        t = squeeze(''.join(f['spelling'] for f in frags))
    lead, rest = tokens_before_introducer(t)
    attrs, mods = [], []
    node = digest.get(s['identifier']['precise'], {})
    for w in lead:
        base = w.split('(')[0]
        if w.startswith('@'):
            builder = type_by_path.get(base[1:])          # a result builder of this module
            is_builder = builder and any(f['spelling'] == '@resultBuilder' or 'resultBuilder' in f['spelling']
                                         for f in builder['declarationFragments'])
            if base in KEEP_ATTRIBUTES or is_builder:
                attrs.append(w)
        elif w in DROP_MODIFIERS or (w == 'final' and kind != 'class'):
            pass
        else:
            mods.append(w)
    if 'DisfavoredOverload' in node.get('declAttributes', []):
        attrs.append('@_disfavoredOverload')
    if deprecated(s) and not any('.'.join(path[:i]) in deprecated_types for i in range(1, len(path))):
        attrs.append('@available(*, deprecated)')
    # properties and subscripts: one notation for stored and computed
    if kind in ('property', 'type.property', 'subscript', 'type.subscript'):
        is_let = rest.startswith('let ')
        rest = re.sub(r'^let ', 'var ', rest)
        m = re.search(r'\s*\{([^{}]*)\}$', rest)
        acc = m.group(1).strip() if m else ('get' if is_let else 'get set')
        body = rest[:m.start()] if m else rest
        kinds = {a['accessorKind'] for a in node.get('accessors', [])}
        if kinds and 'set' not in kinds:                  # setter is not public
            acc = re.sub(r'\s*\b((non)?mutating )?set\b', '', acc)
        rest = '%s { %s }' % (body, acc)
    elif kind == 'typealias':
        pass
    if opt.nonsending_default and '@concurrent' not in attrs and 'nonisolated(nonsending)' not in mods \
            and 'isolated (' not in rest and not any(w.startswith('@') and w.endswith('Actor') for w in lead):
        if kind in ('property', 'type.property', 'subscript', 'type.subscript'):
            is_async = re.search(r'\{[^{}]*\basync\b[^{}]*\}$', rest)
        else:
            is_async = re.match(r'\s*async\b', behind_parameters(rest))
        if is_async:
            mods.append('nonisolated(nonsending)')
    # Self in concrete types, module qualifiers, typealiases of witnesses
    if parent in type_by_path and kind_of(type_by_path[parent]) != 'protocol':
        rest = re.sub(r'\bSelf\b(?!\.)', lambda m: written_type(parent), rest)
        rest = re.sub(r'\bSelf\.', lambda m: parent + '.', rest) if '<' not in written_type(parent) else rest
    rest = resolve(rest)
    rest = re.sub(r'-> \(\)(?=$| )', '-> Void', rest)
    for a, b in ((r'(?<![\w.])Array<([\w. :]+)>', r'[\1]'), (r'(?<![\w.])Optional<([\w.]+)>', r'\1?'),
                 (r'(?<![\w.])Dictionary<([\w.]+), ([\w. ]+)>', r'[\1 : \2]')):
        rest = re.sub(a, b, rest)
    if kind in ('protocol', 'associatedtype'):            # order of inherited protocols
        m = re.match(r'^([^:]*?) : (.*?)( where .*| = .*)?$', rest)
        if m:
            inh = sorted(x for x in (y.strip() for y in m.group(2).split(',')))
            rest = '%s : %s%s' % (m.group(1), ', '.join(inh), m.group(3) or '')
    if opt.loose:
        rest = loose_defaults(rest)
    text = ' '.join(sorted(attrs) + sorted(mods) + [rest])
    ext = s.get('swiftExtension')
    where = extension_where(ext.get('constraints', []), parent) if ext and kind not in TYPES else []
    if ext and ext.get('typeKind') == 'swift.protocol' and kind not in TYPES:
        text += ' // extension' + (' where ' + ', '.join(where) if where else '')
    elif where:
        text += ' // where ' + ', '.join(where)
    return squeeze(text)

def loose_defaults(t):
    """default arguments -> `= …` (only inside the parameter list)"""
    out, i, depth = [], 0, 0
    while i < len(t):
        if depth > 0 and t.startswith(' = ', i):
            j, d = i + 3, 0
            while j < len(t):
                if t[j] in '([{<' and not t.startswith('->', j - 1): d += 1
                if t[j] in ')]}' or (t[j] == '>' and t[j - 1] != '-'):
                    if d == 0: break
                    d -= 1
                if t[j] == ',' and d == 0: break
                j += 1
            out.append(' = …'); i = j; continue
        depth += (t[i] == '(') - (t[i] == ')')
        out.append(t[i]); i += 1
    return ''.join(out)

# ------------------------------------------------------------------ conformances
module_refines = {}
for r in relations:
    if r['kind'] == 'conformsTo' and r['source'] in by_usr and kind_of(by_usr[r['source']]) == 'protocol':
        module_refines.setdefault(path_of[r['source']], set()).add(name_of(r['target'], r.get('targetFallback')))

def closure(p):
    todo, seen = [p], []
    while todo:
        x = todo.pop()
        if x not in seen:
            seen.append(x)
            todo += list(REFINES.get(x, [])) + list(module_refines.get(x, []))
    return seen

conf = {}
for r in relations:
    if r['kind'] not in ('conformsTo', 'inheritsFrom') or '::SYNTHESIZED::' in r['source']:
        continue
    src, dst = name_of(r['source']), name_of(r['target'], r.get('targetFallback'))
    if underscored(src.split('.')) or underscored(dst.split('.')):
        continue
    where = extension_where(r.get('swiftConstraints', []), src)
    for p in ([dst] if where else closure(dst)):          # a conditional conformance implies nothing
        if p in IMPLIED:
            continue
        conf.setdefault((src, p), set()).add(', '.join(where))

# ------------------------------------------------------------------ table
lines = set()
for s in real:
    kind, path = kind_of(s), s['pathComponents']
    name = '.'.join(path)
    if underscored(path) or kind in ('deinit', 'extension', 'module'):
        continue
    if kind == 'func.op' and re.match(r'(==|!=|<|>|<=|>=)\(_:_:\)$', path[-1]):
        continue
    if path[-1] in DROP_NAMES:
        continue
    if path[-1] == 'body' and kind == 'property' and re.search(r': (Swift\.)?Never\b', ''.join(f['spelling'] for f in s['declarationFragments'])):
        continue
    if kind == 'typealias' and path[-1] in WITNESS:
        if digest or path[-1] in WITNESS_DROP:
            continue
    lines.add((kind, name, declaration(s)) + ((s['identifier']['precise'],) if opt.usr else ()))
for p, t, n in digest_aliases:
    parent, _, name = p.rpartition('.')
    if name not in WITNESS or name in WITNESS_DROP or underscored(p.split('.')):
        continue
    t = resolve(t)
    if t == 'Self' or t == parent or t == written_type(parent):
        continue                                          # e.g. PartiallyGenerated = Self, the default
    lines.add(('typealias', p, 'typealias %s = %s' % (name, t)) + ((n['usr'],) if opt.usr else ()))
def implied_by(weak, strong):
    """each constraint of `weak` follows from one of `strong`"""
    def one(c):
        if c in strong:
            return True
        l, sep, r = c.partition(' : ')
        return bool(sep) and any(x.partition(' : ')[0] == l and r in closure(x.partition(' : ')[2]) for x in strong)
    return all(one(c) for c in weak)

for (src, p), wheres in conf.items():
    # a type conforms only once: of several printed conditions, keep the weakest
    sets = {w: [c for c in w.split(', ') if c] for w in wheres}
    wheres = {w for w in wheres if not any(v != w and implied_by(sets[v], sets[w]) for v in wheres)} or wheres
    for w in ({''} if '' in wheres else wheres):
        lines.add(('conformance', src, p + (' where ' + w if w else '')) + (('',) if opt.usr else ()))
for l in sorted(lines):
    print('\t'.join(l))
