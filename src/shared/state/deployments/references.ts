import { JsonScanner } from '../../platform/json/json-scanner.ts';
import { scanElements, sliceOf } from '../../platform/json/json-text.ts';
import { joinParts, listMembers } from '../../platform/json/member-edits.ts';
import type { ResourceText } from './resource.ts';

/** The depth of the URNs in a field, below the resource. */
const referenceDepths = {
  urn: 1,
  parent: 1,
  provider: 1,
  deletedWith: 1,
  viewOf: 1,
  aliases: 2,
  dependencies: 2,
  replaceWith: 2,
  propertyDependencies: 3,
} as const;
type Depths = typeof referenceDepths;

/** A URN, a list of URNs, or lists of URNs by property. `provider` contains a provider reference. */
export type ReferenceField = keyof Depths;

/** An absent or ill-typed field is treated as empty. */
export type ResourceReferences = {
  readonly [Field in ReferenceField]: {
    1: string;
    2: readonly string[];
    3: readonly (readonly string[])[];
  }[Depths[Field]];
};

/** `path[at]` is the resource's member. Null if there is no URN at `path`. */
export function referenceFieldAt(path: readonly (string | number)[], at = 0): ReferenceField | null {
  const field = path[at];
  return isReferenceField(field) && path.length - at === referenceDepths[field] ? field : null;
}

/** Larger resources are scanned. Parsing is three times as fast but needs memory for the whole resource. */
const maxParsedBytes = 64 * 1024;

export function readReferences({ text }: Pick<ResourceText, 'text'>): ResourceReferences {
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
      if (isReferenceField(name)) values.push([name, JSON.parse(text.toString('utf8', start, end))]);
    },
  });
  scanner.write(text);
  scanner.end();
  return values;
}

function isReferenceField(name: string | number | undefined): name is ReferenceField {
  return name !== undefined && Object.hasOwn(referenceDepths, name);
}

/** Keeps the raw text of the strings of an array. Returns null if none passes. */
export function filterStrings(text: Buffer, passes: (value: string) => boolean): Buffer | null {
  const kept: Buffer[] = [];
  for (const span of scanElements(text) ?? []) {
    const element = sliceOf(text, span);
    if (span.kind === 'string' && passes(JSON.parse(element.toString('utf8')))) kept.push(element);
  }
  return kept.length > 0 ? joinParts('[', kept, ']') : null;
}

/** For an object of arrays. Drops keys without remaining strings. Returns null if none remains. */
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
