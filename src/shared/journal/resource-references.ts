import { scanElements, scanMembers, sliceOf } from '../platform/json/json-text.ts';
import { joinParts, listMembers } from './member-edits.ts';
import type { ResourceText } from './resource-text.ts';

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

export function readReferences(resource: ResourceText): ResourceReferences {
  const { text } = resource;
  const members = scanMembers(text);
  const read = (name: string): unknown => {
    const span = members?.get(name);
    return span ? JSON.parse(sliceOf(text, span).toString('utf8')) : undefined;
  };
  return {
    urn: asString(read('urn')),
    parent: asString(read('parent')),
    provider: asString(read('provider')),
    deletedWith: asString(read('deletedWith')),
    viewOf: asString(read('viewOf')),
    aliases: resource.hasAliases ? asStrings(read('aliases')) : [],
    dependencies: asStrings(read('dependencies')),
    replaceWith: asStrings(read('replaceWith')),
    propertyDependencies: Object.values(asRecord(read('propertyDependencies'))).map(asStrings),
  };
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
  return typeof value === 'object' && value !== null ? value : {};
}
