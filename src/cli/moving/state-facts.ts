import { createHash } from 'node:crypto';
import { JsonScanner } from '../../shared/platform/json/json-scanner.ts';
import { ScanWindow } from '../../shared/platform/json/scan-window.ts';
import { nextSlice } from '../../shared/platform/slices/slices.ts';
import { scanResources } from '../../shared/search/scan-resources.ts';
import { EarlierResources } from '../../shared/state/deployments/earlier-resources.ts';
import { urnKey } from '../../shared/state/deployments/live-urns.ts';
import { type ResourceReferences, readReferences } from '../../shared/state/deployments/references.ts';
import { parseUrn } from '../../shared/state/deployments/urn.ts';

export interface StateFacts {
  readonly sha256: string;
  readonly bytes: number;
  readonly resources: number;
  /** The type of the secrets provider; null if there is none. */
  readonly secretsProvider: string | null;
  /** The project in the URN of its first resource. */
  readonly project: string | null;
  /** Why the CLI refuses to load it; null if no reason was found. */
  readonly fault: string | null;
}

/** Maximum size of a manifest or of the state of a secrets provider. */
const maxMemberBytes = 1024 * 1024;

/** Reads a document once. Throws JsonSyntaxError. */
export async function readStateFacts(document: AsyncIterable<Buffer>): Promise<StateFacts> {
  const hash = createHash('sha256');
  const members = new Members();
  const checks = new ResourceChecks();
  let resources = 0;
  const tapped = async function* (): AsyncGenerator<Buffer> {
    for await (const chunk of document) {
      hash.update(chunk);
      members.write(chunk);
      yield chunk;
    }
  };
  const check = (text: Buffer): void => {
    resources++;
    checks.add(text);
  };
  const { bytes, skipped } = await scanResources(tapped(), check, nextSlice);
  return {
    ...{ sha256: hash.digest('hex'), bytes, resources: resources + skipped, project: checks.project },
    secretsProvider: members.secretsProvider,
    // A reference may point to a resource that is too large to be read.
    fault: members.fault ?? (skipped === 0 ? checks.end() : null),
  };
}

/** The small members of the deployment. */
class Members {
  secretsProvider: string | null = null;
  fault: string | null = null;
  readonly #texts = new ScanWindow(maxMemberBytes);
  readonly #scanner = new JsonScanner({
    reportDepth: 3,
    onValue: (path, _kind, start, end) => {
      if (path[0] === 'deployment' && path.length === 3) this.#add(path[1], path[2], this.#texts.textOf(start, end));
      if (path[0] === 'deployment' && path[1] === 'manifest' && path.length === 2) this.#checkManifest();
      this.#texts.pass(end);
    },
  });
  readonly #manifest = new Map<unknown, unknown>();

  write(chunk: Buffer): void {
    this.#texts.beginChunk(chunk);
    this.#scanner.write(chunk);
    this.#texts.endChunk();
  }

  #add(member: unknown, name: unknown, text: Buffer | null): void {
    if (text === null) return;
    if (member === 'manifest') this.#manifest.set(name, JSON.parse(text.toString('utf8')));
    if (member !== 'secrets_providers' || name !== 'type') return;
    const type: unknown = JSON.parse(text.toString('utf8'));
    this.secretsProvider = typeof type === 'string' && type !== '' ? type : null;
  }

  #checkManifest(): void {
    const [magic = '', version = ''] = [this.#manifest.get('magic'), this.#manifest.get('version')];
    if (magic === '' && version === '') return;
    const digest = createHash('sha256').update(String(version)).digest('hex');
    if (magic !== digest) this.fault = 'the magic of its manifest does not match its version';
  }
}

/** The rules of the CLI for resources (pkg/resource/stack/snapshot/integrity.go). */
class ResourceChecks {
  project: string | null = null;
  #fault: string | null = null;
  readonly #earlier = new EarlierResources();
  readonly #live = new Set<string>();

  add(text: Buffer): void {
    const references = readReferences({ text });
    const { urn } = references;
    this.project ??= parseUrn(urn)?.project ?? null;
    if (this.#fault !== null) return;
    const facts = factsOf(text);
    this.#fault = this.#faultOf(references, facts);
    this.#earlier.add({ urn, ...facts });
    if (!facts.delete) this.#live.add(urnKey(urn));
  }

  end(): string | null {
    return this.#fault;
  }

  #faultOf(references: ResourceReferences, facts: ResourceFacts): string | null {
    const { urn } = references;
    if (urn === '') return 'a resource has no URN';
    if (facts.type === '') return `${urn} has no type`;
    if (!facts.custom && facts.id !== '') return `${urn} is a component, but has an id`;
    const missing = this.#earlier.findMissing(references, facts);
    if (missing !== null) return `${urn} needs ${missing}, which is not before it`;
    return !facts.delete && this.#live.has(urnKey(urn)) ? `${urn} is there twice` : null;
  }
}

interface ResourceFacts {
  type: string;
  id: string;
  custom: boolean;
  delete: boolean;
  pendingReplacement: boolean;
}

function factsOf(text: Buffer): ResourceFacts {
  const facts = { type: '', id: '', custom: false, delete: false, pendingReplacement: false };
  const scanner = new JsonScanner({
    reportDepth: 1,
    onValue: ([name], kind, start, end) => {
      if (name === 'type' || name === 'id')
        facts[name] = kind === 'string' ? (JSON.parse(text.toString('utf8', start, end)) as string) : '';
      else if (name === 'custom' || name === 'delete' || name === 'pendingReplacement')
        facts[name] = text.toString('latin1', start, end) === 'true';
    },
  });
  scanner.write(text);
  scanner.end();
  return facts;
}
