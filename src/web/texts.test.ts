import { globSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { parse } from '@babel/parser';
import { expect, test } from '@jest/globals';
import { deliveryTexts, runsTexts } from './statistics/texts.ts';

interface Node {
  readonly type: string;
  readonly loc?: { readonly start: { readonly line: number } };
  readonly [part: string]: unknown;
}

/** What they hold are commands and names, the same in every language. */
const codeTags = new Set(['code', 'Code', 'kbd', 'pre']);
/** Attributes that are neither seen nor heard. */
const hidden =
  /^(align|as|autoCapitalize|autoComplete|autoCorrect|center|className|d|data-.*|dateTime|download|fileName|fill|from|href|holders|htmlFor|id|inputMode|key|kind|lang|list|page|params|part|pattern|placement|position|preserveAspectRatio|rel|role|scope|search|side|size|step|stroke|strokeLinecap|style|target|to|tone|type|viewBox|value|width|aria-(controls|current|describedby|errormessage|hidden|keyshortcuts|labelledby|live|owns|sort|haspopup|expanded|autocomplete|activedescendant|orientation|busy|invalid|checked|selected))$/;
/** Properties of columns, options and such that are shown. */
const shown = /^(about|action|body|crumb|description|heading|hint|label|lead|legend|note|placeholder|stay|title|word)$/;
/** Results are commands of the CLI, the same in every language, and actions of the API. */
const commands = new Set(['stacks/pending-choices.ts']);
/** Functions that show what they get. */
const showing = /^(usePageAction|setProblem)$/;
const letter = /\p{L}/u;
/** More than a name of the code, or a number with its unit. */
const words = /\p{L}{2}.*\s|\s.*\p{L}{2}/u;
/** Commands, keys, styles, queries and codes of the API. */
const code = /^(pulumi |Ctrl |-?\w+:|minmax\(|translateY\(|not started$)/;
const capital = /^\p{Lu}/u;

function findTexts(source: string): string[] {
  const found: string[] = [];
  const report = (node: Node, text: string): void => {
    if (letter.test(text)) found.push(`${node.loc?.start.line}: ${text.trim().replaceAll(/\s+/g, ' ')}`);
  };
  /** Strings that an expression results in. */
  const results = (node: Node | null | undefined): void => {
    if (node?.type === 'StringLiteral') report(node, node['value'] as string);
    else if (node?.type === 'TemplateLiteral') {
      const { expressions, quasis } = node as unknown as {
        readonly expressions: readonly Node[];
        readonly quasis: readonly (Node & { readonly value: { readonly cooked: string } })[];
      };
      report(node, quasis.map(({ value }) => value.cooked).join(' '));
      for (const each of expressions) results(each);
    } else if (node?.type === 'ConditionalExpression') {
      results(node['consequent'] as Node);
      results(node['alternate'] as Node);
    } else if (node?.type === 'LogicalExpression') {
      if (node['operator'] !== '&&') results(node['left'] as Node);
      results(node['right'] as Node);
    } else if (node?.type.startsWith('TS') || node?.type === 'ParenthesizedExpression')
      results(node['expression'] as Node | undefined);
  };
  /** Values that may be of the code. */
  const sayings = (node: Node | null): void => {
    const known = found.length;
    results(node);
    const added = found.splice(known);
    found.push(...added.filter((text) => words.test(textOf(text)) && !code.test(textOf(text))));
  };
  const walk = (node: Node): void => {
    if (node.type === 'ReturnStatement') sayings(node['argument'] as Node | null);
    if (node.type === 'ArrowFunctionExpression') sayings(node['body'] as Node);
    if (node.type === 'ArrayExpression') for (const element of node['elements'] as readonly Node[]) sayings(element);
    if (node.type === 'CallExpression' && showing.test(nameOf(node['callee'] as Node)))
      for (const argument of node['arguments'] as readonly Node[]) results(argument);
    if (node.type === 'JSXText') report(node, node['value'] as string);
    if (node.type === 'JSXElement') {
      const opening = node['openingElement'] as Node & { readonly name: Node };
      if (codeTags.has(String(opening.name['name']))) {
        walk(opening);
        return;
      }
    }
    for (const child of (node['children'] as readonly Node[] | undefined) ?? [])
      if (child.type === 'JSXExpressionContainer') results(child['expression'] as Node);
    if (node.type === 'JSXAttribute') {
      const value = node['value'] as Node | null;
      if (!hidden.test(nameOf(node['name'] as Node)))
        results(value?.type === 'JSXExpressionContainer' ? (value['expression'] as Node) : value);
    }
    if (node.type === 'ObjectProperty') {
      const name = nameOf(node['key'] as Node);
      const value = node['value'] as Node;
      // Names of columns; others are fields of the API.
      if (shown.test(name) || (name === 'name' && capital.test(String(value['value'])))) results(value);
      else sayings(value);
    }
    for (const part of Object.values(node).flat()) if (isNode(part)) walk(part);
  };
  walk(parse(source, { sourceType: 'module', plugins: ['typescript', 'jsx'] }).program as unknown as Node);
  return found;
}

/** Without the line. */
function textOf(found: string): string {
  return found.replace(/^\d+: /, '');
}

function isNode(value: unknown): value is Node {
  return typeof value === 'object' && value !== null && typeof (value as Node).type === 'string';
}

/** Of an attribute or a key; "aria-label" is one, and `aria:label` is not used. */
function nameOf({ name, value }: Node): string {
  return String(name ?? value);
}

test.each([
  ['text', '<p>Deleted</p>'],
  ['text beside elements', '<p><b /> by {login}</p>'],
  ['a string', "<p>{isOpen ? 'Close' : null}</p>"],
  ['a template', `<>{\`\${count} stacks\`}</>`],
  ['a template in one', `<p>{\`\${count}\${isCut ? ' or more' : ''}\`}</p>`],
  ['an alternative', "<p>{login ?? 'an operator'}</p>"],
  ['an attribute', '<Page title="Locks" />'],
  ['an attribute that chooses', `<Button aria-label={isOpen ? 'Close' : \`Open \${name}\`} />`],
  ['a property', "columns({ label: 'Stack' as const })"],
  ['the name of a column', "[{ name: 'Stack', cell }]"],
  ['an argument of what shows it', "setProblem(isOpen ? 'Closed' : null)"],
  ['a result', "() => { return 'Not yet'; }"],
  ['a result of an expression', `(login) => \`Remove the user \${login}\``],
  ['a label under a code', "{ 'lease-expired': 'Its lease has expired' }"],
  ['a word of a status', "{ succeeded: { word: 'Succeeded', tone: 'success' } }"],
  ['a label in a list', "[['raw', 'JSON, signed']]"],
])('%s in a component is found', (_, source) => {
  expect(findTexts(`const x = ${source};`)).not.toEqual([]);
});

test.each([
  ['texts of a texts file', '<p title={lockTexts.title}>{lockTexts.heldBy(login)}</p>'],
  ['fields of the API', "[{ name: 'stack', cell }]"],
  ['commands', `<Code>{\`pulumi up --stack \${name}\`}</Code>`],
  ['names of the code', "() => { const kind = 'up'; return kind; }"],
  ['names of styles, addresses and comparisons', `<a className="x" href="/y">{kind === 'up' ? count : '–'}</a>`],
])('%s are not', (_, source) => {
  expect(findTexts(`const x = ${source};`)).toEqual([]);
});

test('modules take their texts from the texts file of their folder', () => {
  const files = globSync('**/*.{ts,tsx}', { cwd: import.meta.dirname });
  const sources = files.filter((file) => !/(^|\/)(texts\.tsx?|.*\.test\.ts)$/.test(file) && !commands.has(file));
  expect(sources.length).toBeGreaterThan(200);
  const found = sources.flatMap((file) =>
    findTexts(readFileSync(path.join(import.meta.dirname, file), 'utf8')).map((text) => `${file}:${text}`),
  );
  expect(found).toEqual([]);
});

test('numbers and dates have the formats of the reader', () => {
  const files = globSync('**/*.{ts,tsx}', { cwd: import.meta.dirname }).filter((file) => !file.includes('.test.'));
  const others = files.filter((file) =>
    /toLocaleString\((?!numberLocale[,)])|DateTimeFormat\((?!(dateLocale|tag)[,)]|\)\.resolved)|NumberFormat\((?!numberLocale[,)])|toFixed\(1\)/.test(
      readFileSync(path.join(import.meta.dirname, file), 'utf8'),
    ),
  );
  expect(others).toEqual([]);
});

test.each([
  [runsTexts.previews(1), '1 preview'],
  [runsTexts.failedRuns(1), '1 run'],
  [runsTexts.failedRuns(1200), '1,200 runs'],
  [deliveryTexts.changes(1), '1 change'],
  [deliveryTexts.failedOf(1, 1), '1 of 1 run'],
])('one thing is not several: %s', (text, expected) => {
  expect(text).toBe(expected);
});
