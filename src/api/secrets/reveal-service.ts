import { InvalidRequestError, NotFoundError } from '../../shared/platform/errors/errors.ts';
import { scanMembersInSlices, sliceOf } from '../../shared/platform/json/json-text.ts';
import { replaceRanges } from '../../shared/platform/json/member-edits.ts';
import type { StackRef } from '../../shared/stacks/names.ts';
import { stackNotFound } from '../../shared/stacks/stack-errors.ts';
import type { StateScan } from '../platform/admission/state-scans.ts';
import type { ApiContext } from '../platform/api-context.ts';
import type { AuditTrail } from '../platform/audit-trail/audit-trail.ts';
import type { Caller } from '../platform/http/request.ts';
import type { ResourceService } from '../state/resource-service.ts';
import { listSecretsInSlices } from '../state/resources/redacted-json.ts';
import { readRootOutputs } from '../state/resources/root-outputs.ts';
import { createUpdateQueryRepository } from '../updates/update-query-repository.ts';
import type { SecretService } from './secret-service.ts';
import { secureValues } from './secure-values.ts';

export type SecretLocation =
  | { readonly of: 'output'; readonly name: string }
  | { readonly of: 'config'; readonly key: string }
  | {
      readonly of: 'resource';
      readonly urn: string;
      readonly part: 'inputs' | 'outputs';
      readonly path: readonly (string | number)[];
      /** The digest of the part, as `resources.get` has shown it. */
      readonly digest?: string | undefined;
    };

const maxValueBytes = 1024 * 1024;
const maxSecrets = 200;

class NotOursError extends InvalidRequestError {
  override readonly name = 'NotOursError';
  override readonly code = 'not-decryptable';
}

export class RevealService {
  readonly #context: ApiContext;
  readonly #secrets: SecretService;
  readonly #resources: ResourceService;

  constructor(context: ApiContext, { resources, secrets }: { secrets: SecretService; resources: ResourceService }) {
    this.#context = context;
    this.#secrets = secrets;
    this.#resources = resources;
  }

  /**
   * Text unchanged, other values as JSON. The read is recorded with the location of the value before it returns. Throws NotFoundError,
   * ConflictError if the resource has changed since it was shown, InvalidRequestError if only the CLI can decrypt the value,
   * UnavailableError, and the errors of `scan`.
   */
  async reveal(
    scan: StateScan,
    ref: StackRef,
    caller: Caller,
    location: SecretLocation,
    audit: AuditTrail,
  ): Promise<string> {
    const found =
      location.of === 'config'
        ? await this.#readSetting(ref, location.key)
        : await this.#readValue(scan, ref, location);
    if (found === null || found.ciphertexts.length === 0)
      throw new NotFoundError('The newest version does not have this secret: the page may be out of date');
    if (found.ciphertexts.length > maxSecrets)
      throw new NotOursError(`The value has more than ${maxSecrets} secrets: only the CLI shows it (--show-secrets)`);
    const plaintexts = await this.#secrets
      .reveal(ref, caller, { ciphertexts: found.ciphertexts, path: pathOf(location) }, audit)
      .catch((error: unknown) => {
        if (error instanceof InvalidRequestError)
          throw new NotOursError(
            'Only the CLI can decrypt this value (--show-secrets): it was encrypted by another secrets provider, not by this server',
            { cause: error },
          );
        throw error;
      });
    return found.show(plaintexts);
  }

  /** Reads a property of the newest state. */
  async #readValue(
    scan: StateScan,
    ref: StackRef,
    location: Exclude<SecretLocation, { of: 'config' }>,
  ): Promise<Encrypted | null> {
    const text =
      location.of === 'output'
        ? await this.#readOutput(scan, ref, location.name)
        : await this.#readProperty(scan, ref, location);
    if (text === null) return null;
    if (text.length > maxValueBytes)
      throw new NotOursError('The value is too large to be shown here; the CLI shows it');
    const secrets = await listSecretsInSlices(text);
    const encrypted = secrets.filter(({ ciphertext }) => ciphertext !== null);
    return {
      // An import may contain plaintexts, which are unencrypted in the state.
      ciphertexts: encrypted.map(({ ciphertext }) => Buffer.from(ciphertext as string, 'base64')),
      show: (plaintexts) => {
        const ranges = encrypted.map(({ end, start }, at) => ({ start, end, by: plaintexts[at] as Buffer }));
        return textOf(replaceRanges(text, ranges));
      },
    };
  }

  #readProperty(scan: StateScan, ref: StackRef, location: SecretLocation & { of: 'resource' }): Promise<Buffer | null> {
    const { digest = null, part, path, urn } = location;
    return this.#resources.readProperty(scan, ref, urn, part, path, digest);
  }

  async #readOutput(scan: StateScan, ref: StackRef, name: string): Promise<Buffer | null> {
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    const state = stack.stackVersion === 0 ? null : await scan.readVersion(stack.id, stack.stackVersion);
    if (!state) return null;
    const { outputs } = await readRootOutputs(state.bytes);
    const span = outputs && (await scanMembersInSlices(outputs))?.get(name);
    return outputs && span ? sliceOf(outputs, span) : null;
  }

  /** Reads a setting of the last update, as the CLI sends it: ciphertext, or JSON that contains `{"secure": ciphertext}`. */
  async #readSetting(ref: StackRef, key: string): Promise<Encrypted | null> {
    const stack = await this.#context.stacks.find(ref);
    if (!stack) throw stackNotFound(ref);
    const settings = await createUpdateQueryRepository(this.#context.db).findLastSettings(stack.id);
    const config = JSON.parse(settings?.config ?? '{}') as Record<string, unknown>;
    const setting = Object.hasOwn(config, key) ? config[key] : null;
    const { string: value, secret } = (setting ?? {}) as Record<string, unknown>;
    if (typeof value !== 'string') return null;
    const secure = secureValues(value);
    if (secure === null || secure.length === 0)
      return secret === true
        ? { ciphertexts: [Buffer.from(value, 'base64')], show: ([plaintext]) => plaintext?.toString('utf8') ?? '' }
        : null;
    const text = Buffer.from(value);
    return {
      ciphertexts: secure.map(({ ciphertext }) => Buffer.from(ciphertext, 'base64')),
      show: (plaintexts) => {
        const by = (at: number): Buffer => Buffer.from(JSON.stringify(plaintexts[at]?.toString('utf8') ?? ''));
        return replaceRanges(
          text,
          secure.map(({ end, start }, at) => ({ start, end, by: by(at) })),
        ).toString('utf8');
      },
    };
  }
}

interface Encrypted {
  readonly ciphertexts: readonly Buffer[];
  readonly show: (plaintexts: readonly Buffer[]) => string;
}

/** The location for the audit log, without the value. */
function pathOf(location: SecretLocation): string {
  if (location.of === 'output') return `outputs.${location.name}`;
  if (location.of === 'config') return `config.${location.key}`;
  return `${location.urn} ${location.part}${location.path.map((part) => (typeof part === 'number' ? `[${part}]` : `.${part}`)).join('')}`;
}

function textOf(json: Buffer): string {
  const text = json.toString('utf8');
  if (text.startsWith('"')) return JSON.parse(text) as string;
  return text;
}
