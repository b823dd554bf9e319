import { readdir, readFile, stat } from 'node:fs/promises';
import path from 'node:path';
import { text as readText } from 'node:stream/consumers';
import type { TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { LineCounter, parseAllDocuments, type Document as YamlDocument } from 'yaml';
import { AppError } from '../../shared/platform/errors/errors.ts';
import { ConfigurationError } from './configuration-error.ts';
import { type Document, Envelope, keyOf, titleOf } from './document.ts';
import type { KindName, Spec } from './kinds/kind.ts';
import { kinds } from './kinds/kinds.ts';
import { describeIssues, type Issue } from './schema-issues.ts';

const maxBytes = 64 * 1024 * 1024;
const maxProblems = 20;

interface ReadOptions {
  /** The organization of documents that name none. */
  readonly organization: string | undefined;
}

/** `-` is stdin. Throws ConfigurationError with all problems. */
export async function readDocuments(sources: readonly string[], options: ReadOptions): Promise<Document[]> {
  const documents: Document[] = [];
  const problems: string[] = [];
  for (const file of (await Promise.all(sources.map(listFiles))).flat())
    for (const each of parseFile(file, await readSource(file), options))
      if (typeof each === 'string') problems.push(each);
      else documents.push(each);
  problems.push(...duplicates(documents));
  throwProblems(problems);
  return documents;
}

/** Throws ConfigurationError if there are problems. */
export function throwProblems(problems: readonly string[]): void {
  if (problems.length === 0) return;
  const more = problems.length > maxProblems ? [`and ${problems.length - maxProblems} more`] : [];
  throw new ConfigurationError([...problems.slice(0, maxProblems), ...more].join('\n  '));
}

async function listFiles(source: string): Promise<string[]> {
  if (source === '-') return [source];
  const found = await stat(source).catch((cause: unknown) => {
    throw new ConfigurationError(`${source} cannot be read`, { cause });
  });
  if (!found.isDirectory()) return [source];
  const names = await readdir(source, { recursive: true });
  return names
    .filter((name) => /\.(ya?ml|json)$/.test(name) && !name.split(path.sep).some((each) => each.startsWith('.')))
    .toSorted()
    .map((name) => path.join(source, name));
}

async function readSource(file: string): Promise<string> {
  const text = file === '-' ? await readText(process.stdin) : await readFile(file, 'utf8');
  if (text.length > maxBytes) throw new ConfigurationError(`${file} has more than ${maxBytes} bytes`);
  return text;
}

/** The documents of a file; yields their problems as text. */
function* parseFile(file: string, source: string, options: ReadOptions): Generator<Document | string> {
  const lineCounter = new LineCounter();
  const parsed = parseAllDocuments(source, { lineCounter, prettyErrors: false });
  for (const yaml of Array.isArray(parsed) ? parsed : []) {
    const at = (offset: number): string => {
      const { col, line } = lineCounter.linePos(offset);
      return `${file === '-' ? 'stdin' : file}:${line}:${col}`;
    };
    if (yaml.errors.length > 0) yield* yaml.errors.map(({ message, pos }) => `${at(pos[0])}: ${message}`);
    else if (yaml.contents !== null) yield* readDocument(yaml, at, path.dirname(file), options);
  }
}

function* readDocument(
  yaml: YamlDocument,
  at: (offset: number) => string,
  folder: string,
  options: ReadOptions,
): Generator<Document | string> {
  const locate = (where: readonly (string | number)[]): string => at(offsetOf(yaml, where));
  let value: unknown;
  try {
    value = yaml.toJS();
  } catch (error) {
    // The file has too many aliases.
    return yield `${locate([])}: ${(error as Error).message}`;
  }
  const report = (issues: readonly Issue[], above: readonly string[]): string[] =>
    issues.map(({ message, path: below }) => `${locate([...above, ...below])}: ${message}`);
  const issues = issuesOf(Envelope, value);
  if (issues.length > 0) return yield* report(issues, []);
  const {
    kind,
    metadata,
    spec: given = {},
  } = value as {
    kind: KindName;
    metadata: { name: string; organization?: string; labels?: Record<string, string> };
    spec?: Spec;
  };
  const { complete, names, schemaOf, spec: schema } = kinds[kind];
  if (names && !new RegExp(names.pattern).test(metadata.name))
    return yield `${locate(['metadata', 'name'])}: the name of a ${kind} has the form ${names.form}`;
  const wrong = issuesOf(schemaOf?.(given) ?? schema, given);
  if (wrong.length > 0) return yield* report(wrong, ['spec']);
  const organization = kind === 'Organization' ? metadata.name : (metadata.organization ?? options.organization);
  if (organization === undefined)
    return yield `${locate(['metadata'])}: metadata.organization is missing; --organization gives a default`;
  let spec: Spec;
  try {
    spec = complete(given);
  } catch (error) {
    // Rules that a schema cannot express.
    if (!(error instanceof AppError)) throw error;
    return yield `${locate(['spec'])}: ${error.message}`;
  }
  yield {
    ...{ kind, organization, spec, folder, name: metadata.name, labels: metadata.labels ?? {} },
    locate: (below) => locate(below ? ['spec', ...below] : []),
  };
}

function issuesOf(schema: TSchema, value: unknown): Issue[] {
  const validator = compiled(schema);
  return validator.Check(value) ? [] : describeIssues(schema, validator.Errors(value));
}

const validators = new WeakMap<TSchema, ReturnType<typeof Compile>>();
function compiled(schema: TSchema) {
  const known = validators.get(schema) ?? Compile(schema);
  validators.set(schema, known);
  return known;
}

/** The offset of the node at the path, or of its nearest ancestor. */
function offsetOf(yaml: YamlDocument, where: readonly (string | number)[]): number {
  for (let length = where.length; length >= 0; length--) {
    const node = length === 0 ? yaml.contents : yaml.getIn(where.slice(0, length), true);
    const range = (node as { range?: readonly number[] } | null | undefined)?.range;
    if (range?.[0] === undefined) continue;
    const key = where[length - 1];
    // The line of a field is the line of its name.
    const above = (length < 2 ? yaml.contents : yaml.getIn(where.slice(0, length - 1), true)) as {
      items?: { key?: { value?: unknown; range?: readonly number[] } }[];
    } | null;
    const pair = length === 0 ? undefined : above?.items?.find((each) => each?.key?.value === key);
    return pair?.key?.range?.[0] ?? range[0];
  }
  return 0;
}

function duplicates(documents: readonly Document[]): string[] {
  const first = new Map<string, Document>();
  return documents.flatMap((document) => {
    const key = keyOf(document);
    const other = first.get(key);
    if (!other) first.set(key, document);
    return other ? [`${document.locate()}: ${titleOf(document)} is declared twice: first at ${other.locate()}`] : [];
  });
}
