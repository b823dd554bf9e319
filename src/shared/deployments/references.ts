import { JsonScanner } from '../platform/json/json-scanner.ts';
import { scanElements, sliceOf } from '../platform/json/json-text.ts';
import { joinParts, listMembers } from '../platform/json/member-edits.ts';
import type { ResourceText } from './resource.ts';

/** The URNs that a resource names. An absent or ill-typed field reads as empty. */
export interface ResourceReferences {
  readonly urn: string;
  readonly parent: string;
  readonly provider: string;
  readonly deletedWith: string;
  readonly viewOf: string;
  readonly aliases: readonly string[];
  readonly dependencies: readonly string[];
  readonly replaceWith: readonly string[];
  readonly propertyDependencies: readonly (readonly string[])[];
}

const referenceNames = new Set([
  ...['urn', 'parent', 'provider', 'deletedWith', 'viewOf'],
  ...['aliases', 'dependencies', 'replaceWith', 'propertyDependencies'],
]);

/** Up to this size a resource is parsed whole, which is three times as fast as a scan but builds all of it. */
const maxParsedBytes = 64 * 1024;

export function readReferences({ text }: ResourceText): ResourceReferences {
  const values = new Map(
    text.length <= maxParsedBytes ? Object.entries(JSON.parse(text.toString('utf8'))) : scanReferences(text),
  );
  return {
    urn: asString(values.get('urn')),
    parent: asString(values.get('parent')),
    provider: asString(values.get('provider')),
    deletedWith: asString(values.get('deletedWith')),
    viewOf: asString(values.get('viewOf')),
    aliases: asStrings(values.get('aliases')),
    dependencies: asStrings(values.get('dependencies')),
    replaceWith: asStrings(values.get('replaceWith')),
    propertyDependencies: Object.values(asRecord(values.get('propertyDependencies'))).map(asStrings),
  };
}

function scanReferences(text: Buffer): [string, unknown][] {
  const values: [string, unknown][] = [];
  const scanner = new JsonScanner({
    reportDepth: 1,
    onValue: (path, _, start, end) => {
      const name = String(path[0]);
      if (referenceNames.has(name)) values.push([name, JSON.parse(text.toString('utf8', start, end))]);
    },
  });
  scanner.write(text);
  scanner.end();
  return values;
}

/** The array in `text` with only the strings that pass, each as it was spelled; null when none does. */
export function filterStrings(text: Buffer, passes: (value: string) => boolean): Buffer | null {
  const kept: Buffer[] = [];
  for (const span of scanElements(text) ?? []) {
    const element = sliceOf(text, span);
    if (span.kind === 'string' && passes(JSON.parse(element.toString('utf8')))) kept.push(element);
  }
  return kept.length > 0 ? joinParts('[', kept, ']') : null;
}

/** The object of string arrays in `text`, each filtered, and those keys dropped that have nothing left. */
export function filterStringLists(text: Buffer, passes: (value: string) => boolean): Buffer | null {
  const kept: Buffer[] = [];
  for (const { nameStart, valueStart, valueEnd } of listMembers(text)) {
    const list = filterStrings(text.subarray(valueStart, valueEnd), passes);
    if (list) kept.push(Buffer.concat([text.subarray(nameStart, valueStart), list]));
  }
  return kept.length > 0 ? joinParts('{', kept, '}') : null;
}

function asString(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

function asStrings(value: unknown): string[] {
  return Array.isArray(value) ? value.filter((item) => typeof item === 'string') : [];
}

function asRecord(value: unknown): object {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? value : {};
}
