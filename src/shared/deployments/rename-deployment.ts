import { InvalidRequestError } from '../platform/errors/errors.ts';
import { type JsonKind, JsonScanner } from '../platform/json/json-scanner.ts';
import { RecentText } from '../platform/json/recent-text.ts';
import { decodeJsonString, rewriteStrings, StringPlaces } from '../platform/json/rewrite-strings.ts';
import type { StackRef } from '../stacks/names.ts';
import { referenceFieldAt } from './references.ts';
import { renameUrn, type StackRename } from './urn.ts';

/** Values that need more than JSON's kinds are objects which say under this key what they are. */
const signatureKey = '4dabf18193072939515e22adb298388d';
const resourceReference = '5cf8f73096256a8f31e491e813e4eb8e';
const outputValue = 'd0e6a833031e9bbcd3f4e8bde6ca49a4';

/** What the service's secrets provider calls the parts of a stack's place. */
const stackParts: ReadonlyMap<string, keyof StackRef> = new Map([
  ['owner', 'organization'],
  ['project', 'project'],
  ['stack', 'stack'],
]);

type Path = readonly (string | number)[];

/** Longest text in which a mention is looked for, in bytes. */
const maxMentionBytes = 1024 * 1024;
/** What one state may mention its stack: each place is remembered, 8 bytes, until the state is written. Real states of 1 GiB have fewer. */
const maxMentions = 8_000_000;

/** What has been seen of an object inside a property: only its end tells whether these strings are URNs. */
interface OpenObject {
  signature: string;
  /** Where a string begins that would change. */
  urn: number | null;
  dependencies: number[];
}

/** A member of the secrets provider's state. */
interface NamedPart {
  readonly start: number;
  readonly value: string;
}

/**
 * Rewrites a deployment document `{version, features?, deployment}` for a stack that has moved: URNs of the old stack
 * and project wherever they refer to resources, the name of the root stack resource, and the stack that the
 * service's secrets provider names (the CLI decrypts at that place). All other bytes stay as they are; so do secrets,
 * which are encrypted. Reads the document once here, and once for each reading of the result, a chunk at a time; returns the very
 * same source when nothing changes. Throws JsonSyntaxError, InvalidRequestError.
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

/** Finds the strings that mention a stack. */
class Mentions {
  readonly #change: StackRename;
  readonly #scanner: JsonScanner;
  readonly #texts = new RecentText(maxMentionBytes);
  readonly #places = new StringPlaces();
  /** Mentions that are no URNs: their new values, by the place. */
  readonly #names = new Map<number, string>();
  /** By the depth of the object. */
  readonly #openObjects: (OpenObject | undefined)[] = [];
  #pending = 0;
  #secretsType = '';
  readonly #secretsState = new Map<string, NamedPart>();

  constructor(change: StackRename) {
    this.#change = change;
    this.#scanner = new JsonScanner({
      reportDepth: Number.POSITIVE_INFINITY,
      onValue: (path, kind, start, end) => {
        this.#take(path, kind, start, end);
        this.#texts.pass(end);
      },
    });
  }

  /** Throws JsonSyntaxError, InvalidRequestError. */
  write(chunk: Buffer): void {
    this.#texts.beginChunk(chunk);
    this.#scanner.write(chunk);
    this.#texts.endChunk();
  }

  /** Where the strings begin, in order, and what they become. Throws JsonSyntaxError. */
  end(): { starts: Float64Array; rule: (value: string, start: number) => string } {
    this.#scanner.end();
    const rule = (value: string, start: number): string => this.#names.get(start) ?? renameUrn(value, this.#change);
    return { starts: this.#places.sorted(), rule };
  }

  #take(path: Path, kind: JsonKind, start: number, end: number): void {
    if (path[0] !== 'deployment') return;
    switch (path[1]) {
      case 'resources':
        this.#takeResource(path, 3, kind, start, end);
        break;
      // The CLI's delta mode writes the second spelling (pkg/backend/httpstate/diffs.go).
      case 'pending_operations':
      case 'pendingOperations':
        if (path[3] === 'resource') this.#takeResource(path, 4, kind, start, end);
        break;
      case 'snippets':
        if (path[3] === 'references' && path.length === 5) this.#takeUrn(kind, start, end);
        break;
      case 'secrets_providers':
        this.#takeSecretsProvider(path, kind, start, end);
    }
  }

  /** `path[at]` is the resource's member. */
  #takeResource(path: Path, at: number, kind: JsonKind, start: number, end: number): void {
    if (referenceFieldAt(path, at) !== null) {
      this.#takeUrn(kind, start, end);
      return;
    }
    switch (path[at]) {
      // The map of all inputs or outputs is no value itself, whatever its keys are.
      case 'inputs':
      case 'outputs':
        this.#takeProperty(path, path.length - at > 1, kind, start, end);
        break;
      case 'replacementTrigger':
        this.#takeProperty(path, true, kind, start, end);
    }
  }

  #takeUrn(kind: JsonKind, start: number, end: number): void {
    if (kind === 'string' && this.#isMention(start, end)) this.#add(start);
  }

  #takeProperty(path: Path, isValue: boolean, kind: JsonKind, start: number, end: number): void {
    const depth = path.length;
    if (kind === 'string') {
      const key = path[depth - 1];
      if (key === 'urn') this.#openObject(depth - 1).urn = this.#isMention(start, end) ? start : null;
      else if (key === signatureKey) {
        this.#openObject(depth - 1).signature = this.#valueOf(start, end) ?? '';
      } else if (typeof key === 'number' && path[depth - 2] === 'dependencies') {
        if (!this.#isMention(start, end)) return;
        this.#openObject(depth - 2).dependencies.push(start);
        this.#pending++;
        this.#assertFew();
      }
    } else if (kind === 'object') {
      const object = this.#openObjects[depth];
      if (!object) return;
      this.#openObjects[depth] = undefined;
      this.#pending -= object.dependencies.length;
      if (!isValue) return;
      if (object.signature === resourceReference && object.urn !== null) this.#add(object.urn);
      else if (object.signature === outputValue) for (const place of object.dependencies) this.#add(place);
    }
  }

  #openObject(depth: number): OpenObject {
    this.#openObjects[depth] ??= { signature: '', urn: null, dependencies: [] };
    return this.#openObjects[depth];
  }

  #takeSecretsProvider(path: Path, kind: JsonKind, start: number, end: number): void {
    if (path[2] === 'type' && path.length === 3) {
      this.#secretsType = (kind === 'string' && this.#valueOf(start, end)) || '';
    } else if (path[2] === 'state' && path.length === 4) {
      const name = String(path[3]);
      if (kind !== 'string' || !stackParts.has(name)) return;
      this.#secretsState.set(name, { start, value: this.#valueOf(start, end) ?? '' });
    } else if (path.length === 2) {
      if (this.#secretsType === 'service') this.#renameSecretsStack();
      this.#secretsType = '';
      this.#secretsState.clear();
    }
  }

  /** Only when it names this stack: a provider that names another one uses that one's key, and goes on doing so. */
  #renameSecretsStack(): void {
    const { from, to } = this.#change;
    for (const [member, part] of stackParts) if (this.#secretsState.get(member)?.value !== from[part]) return;
    for (const [member, part] of stackParts) {
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

  /** Null for what is too long to be a mention. */
  #valueOf(start: number, end: number): string | null {
    const text = this.#texts.textOf(start, end);
    return text === null ? null : decodeJsonString(text, 0, text.length);
  }

  #add(start: number): void {
    this.#places.add(start);
    this.#assertFew();
  }

  #assertFew(): void {
    if (this.#places.count + this.#pending <= maxMentions) return;
    throw new InvalidRequestError(
      `The state mentions its own stack more than ${maxMentions} times, which is more than this server can rename`,
    );
  }
}
