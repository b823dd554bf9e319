import { type JsonKind, JsonScanner } from '../platform/json/json-scanner.ts';
import { decodeJsonString, StringRewriter, type StringRule } from '../platform/json/rewrite-strings.ts';
import { renameUrn, type StackRename } from './rename-urn.ts';

/** Values that need more than JSON's kinds are objects which say under this key what they are. */
const signatureKey = '4dabf18193072939515e22adb298388d';
const resourceReference = '5cf8f73096256a8f31e491e813e4eb8e';
const outputValue = 'd0e6a833031e9bbcd3f4e8bde6ca49a4';

type Path = readonly (string | number)[];

interface Place {
  readonly start: number;
  readonly end: number;
}

/** What has been seen of an object inside a property: only its end tells whether these strings are URNs. */
interface OpenObject {
  signature: string;
  urn: Place | null;
  dependencies: Place[];
}

/**
 * Rewrites a deployment document `{version, features?, deployment}` for a stack that has moved: URNs of the old stack
 * and project wherever they refer to resources, the name of the root stack resource, and the stack that the
 * service's secrets provider names (the CLI decrypts at that place). All other bytes stay as they are; so do secrets,
 * which are encrypted. Returns the same Buffer when nothing changes. Throws JsonSyntaxError.
 */
export function renameDeployment(document: Buffer, change: StackRename): Buffer {
  const renaming = new DeploymentRenaming(document, change);
  const scanner = new JsonScanner({
    reportDepth: Number.POSITIVE_INFINITY,
    onValue: (path, kind, start, end) => renaming.take(path, kind, start, end),
  });
  scanner.write(document);
  scanner.end();
  return renaming.finish();
}

class DeploymentRenaming {
  readonly #document: Buffer;
  readonly #change: StackRename;
  readonly #strings: StringRewriter;
  readonly #urnRule: StringRule;
  /** By the depth of the object. */
  readonly #openObjects: (OpenObject | undefined)[] = [];
  #secretsType = '';
  readonly #secretsState = new Map<string | number | undefined, Place>();

  constructor(document: Buffer, change: StackRename) {
    this.#document = document;
    this.#change = change;
    this.#strings = new StringRewriter(document);
    this.#urnRule = (urn) => renameUrn(urn, change);
  }

  take(path: Path, kind: JsonKind, start: number, end: number): void {
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

  finish(): Buffer {
    return this.#strings.apply();
  }

  /** `path[at]` is the resource's member. */
  #takeResource(path: Path, at: number, kind: JsonKind, start: number, end: number): void {
    const depth = path.length - at;
    switch (path[at]) {
      case 'urn':
      case 'parent':
      case 'provider':
      case 'deletedWith':
      case 'viewOf':
        if (depth === 1) this.#takeUrn(kind, start, end);
        break;
      case 'dependencies':
      case 'replaceWith':
      case 'aliases':
        if (depth === 2) this.#takeUrn(kind, start, end);
        break;
      case 'propertyDependencies':
        if (depth === 3) this.#takeUrn(kind, start, end);
        break;
      // The map of all inputs or outputs is no value itself, whatever its keys are.
      case 'inputs':
      case 'outputs':
        this.#takeProperty(path, depth > 1, kind, start, end);
        break;
      case 'replacementTrigger':
        this.#takeProperty(path, true, kind, start, end);
    }
  }

  #takeUrn(kind: JsonKind, start: number, end: number): void {
    if (kind === 'string') this.#strings.add(start, end, this.#urnRule);
  }

  #takeProperty(path: Path, isValue: boolean, kind: JsonKind, start: number, end: number): void {
    const depth = path.length;
    if (kind === 'string') {
      const key = path[depth - 1];
      if (key === 'urn') this.#openObject(depth - 1).urn = { start, end };
      else if (key === signatureKey) {
        this.#openObject(depth - 1).signature = decodeJsonString(this.#document, start, end);
      } else if (typeof key === 'number' && path[depth - 2] === 'dependencies') {
        this.#openObject(depth - 2).dependencies.push({ start, end });
      }
    } else if (kind === 'object') {
      const object = this.#openObjects[depth];
      if (!object) return;
      this.#openObjects[depth] = undefined;
      if (!isValue) return;
      if (object.signature === resourceReference && object.urn) {
        this.#takeUrn('string', object.urn.start, object.urn.end);
      } else if (object.signature === outputValue) {
        for (const place of object.dependencies) this.#takeUrn('string', place.start, place.end);
      }
    }
  }

  #openObject(depth: number): OpenObject {
    this.#openObjects[depth] ??= { signature: '', urn: null, dependencies: [] };
    return this.#openObjects[depth];
  }

  #takeSecretsProvider(path: Path, kind: JsonKind, start: number, end: number): void {
    if (path[2] === 'type' && path.length === 3) {
      this.#secretsType = kind === 'string' ? decodeJsonString(this.#document, start, end) : '';
    } else if (path[2] === 'state' && path.length === 4) {
      if (kind === 'string') this.#secretsState.set(path[3], { start, end });
    } else if (path.length === 2) {
      if (this.#secretsType === 'service') this.#renameSecretsStack();
      this.#secretsType = '';
      this.#secretsState.clear();
    }
  }

  /** Only when it names this stack: a provider that names another one uses that one's key, and goes on doing so. */
  #renameSecretsStack(): void {
    const { from, to } = this.#change;
    const renames = [
      { place: this.#secretsState.get('owner'), old: from.organization, new: to.organization },
      { place: this.#secretsState.get('project'), old: from.project, new: to.project },
      { place: this.#secretsState.get('stack'), old: from.stack, new: to.stack },
    ];
    const isThisStack = renames.every(
      ({ place, old }) => place && decodeJsonString(this.#document, place.start, place.end) === old,
    );
    if (!isThisStack) return;
    for (const rename of renames) {
      if (rename.place) this.#strings.add(rename.place.start, rename.place.end, () => rename.new);
    }
  }
}
