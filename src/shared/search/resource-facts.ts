import {
  type JsonSpan,
  scanJsonInSlices,
  scanMembers,
  scanMembersInSlices,
  sliceOf,
} from '../platform/json/json-text.ts';
import { denseSliceBytes, nextSlice, Slices } from '../platform/slices/slices.ts';
import { copyOf, cutText } from '../platform/text/cut-text.ts';
import { parseQualifiedName, type StackRef } from '../stacks/names.ts';
import { diffProperties } from './property-leaves.ts';
import { deletedKey, providerKey, resourceKey, shortHash, withoutStack } from './resource-key.ts';
import { isSameWithoutStack } from './stackless-text.ts';

const stackReferenceType = 'pulumi:pulumi:StackReference';
const providerTypePrefix = 'pulumi:providers:';

/** Longer URNs, types and names are cut, in characters. */
const maxTextLength = 2_000;
const maxPlaceLength = 200;
const maxDependencies = 2_000;
/** Differing members reported for one resource, which usually has about 30. */
const maxMembers = 20_000;
const membersPerSlice = 1_000;

/** Contains no property values, except the name of a referenced stack and versions of providers. */
export interface ResourceFacts {
  readonly key: string;
  readonly digest: string;
  readonly urn: string;
  readonly type: string;
  readonly name: string;
  readonly place: string;
  readonly parent: string | null;
  readonly provider: string | null;
  readonly providerVersion: string | null;
  readonly dependencies: readonly string[];
  readonly isCustom: boolean;
  readonly isExternal: boolean;
  readonly isProtected: boolean;
  readonly deletesFirst: boolean;
  readonly isDeleted: boolean;
  readonly inputsHash: string | null;
  readonly outputsHash: string | null;
  readonly reads: string | null;
}

/** Raw JSON. Create it by `viewResource`. */
export class ResourceView {
  readonly text: Buffer;
  readonly #members: ReadonlyMap<string, JsonSpan>;
  #urn: string | null = null;

  constructor(text: Buffer, members: ReadonlyMap<string, JsonSpan>) {
    this.text = text;
    this.#members = members;
  }

  get names(): Iterable<string> {
    return this.#members.keys();
  }

  has(name: string): boolean {
    return this.#members.has(name);
  }

  /** Raw JSON; null if the member is absent or null. */
  raw(name: string): Buffer | null {
    const span = this.#members.get(name);
    if (span === undefined || (span.kind === 'literal' && this.text[span.start] === 0x6e)) return null;
    return sliceOf(this.text, span);
  }

  string(name: string): string {
    const value = this.#small(name, 'string');
    return typeof value === 'string' ? value : '';
  }

  isTrue(name: string): boolean {
    return this.raw(name)?.toString('utf8') === 'true';
  }

  /** Only the first `limit` strings of a list. */
  async strings(name: string, limit: number): Promise<string[]> {
    const text = this.raw(name);
    if (text === null || this.#members.get(name)?.kind !== 'array') return [];
    const found: string[] = [];
    const onValue = (path: readonly (string | number)[], { end, kind, start }: JsonSpan): void => {
      if (path.length === 1 && kind === 'string' && found.length < limit)
        found.push(JSON.parse(text.toString('utf8', start, end)) as string);
    };
    await scanJsonInSlices(text, 1, onValue, denseSliceBytes);
    return found;
  }

  get urn(): string {
    this.#urn ??= this.string('urn');
    return this.#urn;
  }

  get isDeleted(): boolean {
    return this.isTrue('delete');
  }

  get key(): string {
    return this.isDeleted ? deletedKey(this.urn, this.string('id')) : resourceKey(this.urn);
  }

  #small(name: string, kind: JsonSpan['kind']): unknown {
    const span = this.#members.get(name);
    return span?.kind === kind ? (JSON.parse(sliceOf(this.text, span).toString('utf8')) as unknown) : null;
  }
}

/** In slices of the event loop if the resource is large. Throws JsonSyntaxError. */
export async function viewResource(text: Buffer): Promise<ResourceView> {
  const members = text.length <= denseSliceBytes ? scanMembers(text) : await scanMembersInSlices(text);
  return new ResourceView(text, members ?? new Map());
}

export function digestOf(text: Buffer): string {
  return shortHash(text);
}

export async function readFacts(view: ResourceView, digest: string, stack: StackRef): Promise<ResourceFacts> {
  const { urn } = view;
  const type = view.string('type');
  const tail = withoutStack(urn);
  const parent = view.string('parent');
  const dependencies = (await view.strings('dependencies', maxDependencies)).map(resourceKey);
  return {
    key: view.key,
    digest,
    urn: storable(urn, maxTextLength),
    type: storable(type, maxTextLength),
    name: storable(copyOf(urn.slice(urn.lastIndexOf('::') + (urn.includes('::') ? 2 : 1))), maxTextLength),
    place: storable(tail, maxPlaceLength),
    parent: parent === '' ? null : resourceKey(parent),
    provider: providerKey(view.string('provider')),
    providerVersion: type.startsWith(providerTypePrefix) ? await inputString(view, 'version') : null,
    dependencies: [...new Set(dependencies)],
    isCustom: view.isTrue('custom'),
    isExternal: view.isTrue('external'),
    isProtected: view.isTrue('protect'),
    deletesFirst: view.isTrue('deleteBeforeReplace'),
    isDeleted: view.isDeleted,
    inputsHash: hashOf(view.raw('inputs')),
    outputsHash: hashOf(view.raw('outputs')),
    reads: type === stackReferenceType ? await readStackName(view, stack) : null,
  };
}

/** These differ without a change by a user, or are compared separately. */
const ignoredMembers = new Set(['urn', 'inputs', 'outputs', 'created', 'modified', 'sourcePosition', 'stackTrace']);

/** `paths` are names of properties; empty, with `updated`, if nothing changed. */
export async function compareResources(
  before: ResourceView,
  after: ResourceView,
): Promise<{ readonly change: 'updated' | 'replaced'; readonly paths: readonly string[] }> {
  const isReplaced = differs(before, after, 'id') || differs(before, after, 'created');
  const paths = await differingMembers(before, after);
  const slices = new Slices(denseSliceBytes);
  for (const part of ['inputs', 'outputs']) {
    for (const { path } of await diffProperties(before.raw(part), after.raw(part))) {
      paths.add(joinPath(part, path));
      await slices.spend(path.length);
    }
  }
  return { change: isReplaced ? 'replaced' : 'updated', paths: [...paths] };
}

async function differingMembers(before: ResourceView, after: ResourceView): Promise<Set<string>> {
  const found = new Set<string>();
  let seen = 0;
  for (const view of [before, after]) {
    for (const name of view.names) {
      if (++seen % membersPerSlice === 0) await nextSlice();
      if (ignoredMembers.has(name) || found.has(name) || (view === after && before.has(name))) continue;
      if (!(await sameReferences(before.raw(name), after.raw(name)))) found.add(name);
      if (found.size === maxMembers) return found;
    }
  }
  return found;
}

/** For example `inputs.tags` or `inputs["a b"]`. */
export function joinPath(part: string, path: string): string {
  if (path === '') return part;
  return path.startsWith('[') ? `${part}${path}` : `${part}.${path}`;
}

/** Both must have the member: a resource gets its id and creation time only after it was first saved. */
function differs(before: ResourceView, after: ResourceView, name: string): boolean {
  const [was, is] = [before.string(name), after.string(name)];
  return was !== '' && is !== '' && was !== is;
}

/** A rename changes the stack's name in URNs, which is ignored here. */
async function sameReferences(before: Buffer | null, after: Buffer | null): Promise<boolean> {
  if (before === null || after === null) return before === after;
  return before.equals(after) || (before.includes('urn:pulumi:') && isSameWithoutStack(before, after));
}

function hashOf(text: Buffer | null): string | null {
  return text === null ? null : shortHash(text);
}

/** Postgres does not store NULs. */
function storable(text: string, maxLength: number): string {
  const whole = text.replaceAll('\0', '\uFFFD').toWellFormed();
  return cutText(whole, maxLength);
}

/** Null unless the input is a string and not a secret. */
async function inputString(view: ResourceView, name: string): Promise<string | null> {
  const inputs = view.raw('inputs');
  const span = inputs && (await scanMembersInSlices(inputs))?.get(name);
  if (!inputs || span?.kind !== 'string') return null;
  return storable(JSON.parse(sliceOf(inputs, span).toString('utf8')) as string, 200);
}

/** Like the CLI, takes missing parts from the stack that contains the reference. */
async function readStackName(view: ResourceView, { organization, project }: StackRef): Promise<string | null> {
  const parts = (await inputString(view, 'name'))?.split('/') ?? [];
  const [first = '', second = '', third = ''] = parts;
  const named =
    parts.length === 1
      ? `${organization}/${project}/${first}`
      : parts.length === 2
        ? `${first}/${project}/${second}`
        : `${first}/${second}/${third}`;
  return parts.length > 3 || parseQualifiedName(named) === null ? null : named;
}
