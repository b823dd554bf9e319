import { InvalidRequestError } from '../../platform/errors/errors.ts';
import { type JsonKind, JsonScanner } from '../../platform/json/json-scanner.ts';
import { decodeJsonString } from '../../platform/json/json-strings.ts';
import { rewriteStrings, StringSpans } from '../../platform/json/rewrite-strings.ts';
import { ScanWindow } from '../../platform/json/scan-window.ts';
import type { StackRef } from '../../stacks/names.ts';
import { referenceFieldAt } from './references.ts';
import { renameUrn, type StackRename } from './urn.ts';

/** Values of types that JSON lacks are objects with their kind under this key. */
const signatureKey = '4dabf18193072939515e22adb298388d';
const resourceReference = '5cf8f73096256a8f31e491e813e4eb8e';
const outputValue = 'd0e6a833031e9bbcd3f4e8bde6ca49a4';

/** Member names in the state of the service secrets provider. */
const stackRefMembers: ReadonlyMap<string, keyof StackRef> = new Map([
  ['owner', 'organization'],
  ['project', 'project'],
  ['stack', 'stack'],
]);

type Path = readonly (string | number)[];

/** Longer strings are not searched for a mention. */
const maxMentionBytes = 1024 * 1024;
/** Each mention takes 8 bytes of memory until the state is written. Real states of 1 GiB have fewer. */
const maxMentions = 8_000_000;

/** Only the end of the object shows whether its strings are URNs. */
interface OpenObject {
  signature: string;
  /** The offset of the `urn` string, if the rename would change it. */
  urn: number | null;
  dependencies: number[];
}

interface NamedPart {
  readonly start: number;
  readonly value: string;
}

/**
 * Rewrites URNs of the old stack and project wherever they refer to resources, the name of the root stack resource, and the stack in the
 * service secrets provider's state (which the CLI uses to decrypt). Keeps all other bytes, including encrypted secrets. Streams the
 * document once here and once for each read of the result. Returns `document` itself if nothing changes. Throws JsonSyntaxError and
 * InvalidRequestError.
 */
export async function renameDeployment(
  document: () => AsyncIterable<Buffer>,
  change: StackRename,
): Promise<() => AsyncIterable<Buffer>> {
  const mentions = new Mentions(change);
  for await (const chunk of document()) mentions.write(chunk);
  const { starts, rule } = mentions.end();
  return starts.length === 0 ? document : () => rewriteStrings(document(), starts, rule);
}

class Mentions {
  readonly #change: StackRename;
  readonly #scanner: JsonScanner;
  readonly #texts = new ScanWindow(maxMentionBytes);
  readonly #offsets = new StringSpans();
  /** New values of mentions that are not URNs, by offset. */
  readonly #names = new Map<number, string>();
  /** Indexed by the depth of the object. */
  readonly #openObjects: (OpenObject | undefined)[] = [];
  #pendingDependencies = 0;
  #secretsType = '';
  readonly #secretsState = new Map<string, NamedPart>();

  constructor(change: StackRename) {
    this.#change = change;
    this.#scanner = new JsonScanner({
      reportDepth: Number.POSITIVE_INFINITY,
      onValue: (path, kind, start, end) => {
        this.#addValue(path, kind, start, end);
        this.#texts.pass(end);
      },
    });
  }

  /** Throws JsonSyntaxError and InvalidRequestError. */
  write(chunk: Buffer): void {
    this.#texts.beginChunk(chunk);
    this.#scanner.write(chunk);
    this.#texts.endChunk();
  }

  /** `starts`: sorted offsets of the strings to change. `rule`: their new values. Throws JsonSyntaxError. */
  end(): { starts: Float64Array; rule: (value: string, start: number) => string } {
    this.#scanner.end();
    const rule = (value: string, start: number): string => this.#names.get(start) ?? renameUrn(value, this.#change);
    return { starts: this.#offsets.sorted(), rule };
  }

  #addValue(path: Path, kind: JsonKind, start: number, end: number): void {
    if (path[0] !== 'deployment') return;
    switch (path[1]) {
      case 'resources':
        this.#addResourceValue(path, 3, kind, start, end);
        break;
      // The CLI's delta mode writes the second spelling (pkg/backend/httpstate/diffs.go).
      case 'pending_operations':
      case 'pendingOperations':
        if (path[3] === 'resource') this.#addResourceValue(path, 4, kind, start, end);
        break;
      case 'snippets':
        if (path[3] === 'references' && path.length === 5) this.#addUrn(kind, start, end);
        break;
      case 'secrets_providers':
        this.#addSecretsProviderValue(path, kind, start, end);
    }
  }

  /** `path[at]` is the resource's member. */
  #addResourceValue(path: Path, at: number, kind: JsonKind, start: number, end: number): void {
    if (referenceFieldAt(path, at) !== null) {
      this.#addUrn(kind, start, end);
      return;
    }
    switch (path[at]) {
      // The map of all inputs or outputs is not itself a property value, even if it has the keys of one.
      case 'inputs':
      case 'outputs':
        this.#addPropertyValue(path, path.length - at > 1, kind, start, end);
        break;
      case 'replacementTrigger':
        this.#addPropertyValue(path, true, kind, start, end);
    }
  }

  #addUrn(kind: JsonKind, start: number, end: number): void {
    if (kind === 'string' && this.#isMention(start, end)) this.#add(start);
  }

  #addPropertyValue(path: Path, isValue: boolean, kind: JsonKind, start: number, end: number): void {
    const depth = path.length;
    if (kind === 'string') {
      const key = path[depth - 1];
      if (key === 'urn') this.#openObject(depth - 1).urn = this.#isMention(start, end) ? start : null;
      else if (key === signatureKey) {
        this.#openObject(depth - 1).signature = this.#valueOf(start, end) ?? '';
      } else if (typeof key === 'number' && path[depth - 2] === 'dependencies') {
        if (!this.#isMention(start, end)) return;
        this.#openObject(depth - 2).dependencies.push(start);
        this.#pendingDependencies++;
        this.#assertLimit();
      }
    } else if (kind === 'object') {
      const object = this.#openObjects[depth];
      if (!object) return;
      this.#openObjects[depth] = undefined;
      this.#pendingDependencies -= object.dependencies.length;
      if (!isValue) return;
      if (object.signature === resourceReference && object.urn !== null) this.#add(object.urn);
      else if (object.signature === outputValue) for (const offset of object.dependencies) this.#add(offset);
    }
  }

  #openObject(depth: number): OpenObject {
    this.#openObjects[depth] ??= { signature: '', urn: null, dependencies: [] };
    return this.#openObjects[depth];
  }

  #addSecretsProviderValue(path: Path, kind: JsonKind, start: number, end: number): void {
    if (path[2] === 'type' && path.length === 3) {
      this.#secretsType = (kind === 'string' && this.#valueOf(start, end)) || '';
    } else if (path[2] === 'state' && path.length === 4) {
      const name = String(path[3]);
      if (kind !== 'string' || !stackRefMembers.has(name)) return;
      this.#secretsState.set(name, { start, value: this.#valueOf(start, end) ?? '' });
    } else if (path.length === 2) {
      if (this.#secretsType === 'service') this.#renameSecretsStack();
      this.#secretsType = '';
      this.#secretsState.clear();
    }
  }

  /** A provider of another stack keeps using that stack's key. */
  #renameSecretsStack(): void {
    const { from, to } = this.#change;
    for (const [member, part] of stackRefMembers) if (this.#secretsState.get(member)?.value !== from[part]) return;
    for (const [member, part] of stackRefMembers) {
      const { start, value } = this.#secretsState.get(member) as NamedPart;
      if (value === to[part]) continue;
      this.#add(start);
      this.#names.set(start, to[part]);
    }
  }

  #isMention(start: number, end: number): boolean {
    const value = this.#valueOf(start, end);
    return value !== null && renameUrn(value, this.#change) !== value;
  }

  /** Null if the string is too long to be a mention. */
  #valueOf(start: number, end: number): string | null {
    const text = this.#texts.textOf(start, end);
    return text === null ? null : decodeJsonString(text, 0, text.length);
  }

  #add(start: number): void {
    this.#offsets.add(start);
    this.#assertLimit();
  }

  #assertLimit(): void {
    if (this.#offsets.count + this.#pendingDependencies <= maxMentions) return;
    throw new InvalidRequestError(
      `The state mentions its own stack more than ${maxMentions} times, which is more than this server can rename`,
    );
  }
}
