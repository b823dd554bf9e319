import { JsonScanner } from '../../platform/json/json-scanner.ts';
import { editMembers, type MemberEdit } from '../../platform/json/member-edits.ts';

/** The deployment features that a resource can require. */
export const ResourceFeature = {
  refreshBeforeUpdate: 1,
  views: 2,
  hooks: 4,
  taint: 8,
  replaceWith: 16,
  extensionParameterization: 32,
  'snippets-prototype': 64,
} as const;

const memberFeatures = new Map<string | number | undefined, number>([
  ['refreshBeforeUpdate', ResourceFeature.refreshBeforeUpdate],
  ['viewOf', ResourceFeature.views],
  ['resourceHooks', ResourceFeature.hooks],
  ['taint', ResourceFeature.taint],
  ['replaceWith', ResourceFeature.replaceWith],
  ['extensionRef', ResourceFeature.extensionParameterization],
  ['snippetID', ResourceFeature['snippets-prototype']],
]);

export interface ResourceText {
  readonly text: Buffer;
  /** Bits of ResourceFeature. */
  readonly features: number;
  readonly hasAliases: boolean;
  /** The position in the base document if the bytes are unchanged, otherwise -1. */
  readonly basePosition: number;
}

/** If a member is repeated, the last one wins. */
export class ResourceReader {
  #features: number;
  #hasAliases: boolean;

  constructor(resource?: ResourceText) {
    this.#features = resource?.features ?? 0;
    this.#hasAliases = resource?.hasAliases ?? false;
  }

  addMember(name: string | number | undefined, source: Buffer, start: number, end: number): void {
    if (name === 'aliases') {
      this.#hasAliases = isFilled(source, start, end);
      return;
    }
    const bit = memberFeatures.get(name);
    if (bit === undefined) return;
    this.#features = isFilled(source, start, end) ? this.#features | bit : this.#features & ~bit;
  }

  /** Also resets the reader for the next resource. */
  finish(text: Buffer, basePosition = -1): ResourceText {
    const resource = { text, features: this.#features, hasAliases: this.#hasAliases, basePosition };
    this.#features = 0;
    this.#hasAliases = false;
    return resource;
  }
}

export function readResource(text: Buffer): ResourceText {
  const reader = new ResourceReader();
  const scanner = new JsonScanner({
    reportDepth: 1,
    onValue: (path, _, start, end) => {
      if (path.length === 1) reader.addMember(path[0], text, start, end);
    },
  });
  scanner.write(text);
  scanner.end();
  return reader.finish(text);
}

/** All other members keep their bytes. */
export function editResource(resource: ResourceText, edits: ReadonlyMap<string, MemberEdit>): ResourceText {
  if (edits.size === 0) return resource;
  const reader = new ResourceReader(resource);
  const trackedEdits = new Map<string, MemberEdit>();
  for (const [name, edit] of edits) {
    trackedEdits.set(name, (value) => {
      const edited = edit(value);
      reader.addMember(name, edited ?? nullText, 0, edited?.length ?? nullText.length);
      return edited;
    });
  }
  const text = editMembers(resource.text, trackedEdits);
  return reader.finish(text);
}

const nullText = Buffer.from('null');
const trueText = Buffer.from('true');

export function flagResource(resource: ResourceText, names: readonly string[]): ResourceText {
  return editResource(resource, new Map(names.map((name) => [name, () => trueText])));
}

/** Whether Go's omitempty would keep the value. */
export function isFilled(source: Buffer, start: number, end: number): boolean {
  switch (source[start]) {
    case 0x22:
      return end - start > 2;
    case 0x6e:
    case 0x66:
      return false;
    case 0x5b:
    case 0x7b:
      for (let i = start + 1; i < end - 1; i++) if ((source[i] as number) > 0x20) return true;
      return false;
    default:
      return true;
  }
}
