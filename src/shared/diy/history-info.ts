import { changeCounts } from '../updates/change-counts.ts';
import { cliConfig, isConfigValue } from '../updates/cli-texts.ts';
import { TransferError } from './diy-layout.ts';

/** Newer than the JSON types of TypeScript. */
const exactJson = JSON as unknown as {
  rawJSON(text: string): object;
  isRawJSON(value: unknown): boolean;
  parse(text: string, reviver: (key: string, value: unknown, context: { source?: string }) => unknown): unknown;
};

interface ConfigValue {
  readonly string: string;
  readonly secret: boolean;
  readonly object: boolean;
}

/** An update as a service lists it (sdk/go/common/apitype/history.go). */
export interface ServiceUpdate {
  readonly kind?: string;
  readonly startTime?: number;
  readonly endTime?: number;
  readonly message?: string;
  readonly environment?: Readonly<Record<string, unknown>>;
  readonly config?: Readonly<Record<string, Partial<ConfigValue>>>;
  readonly result?: string;
  readonly resourceChanges?: Readonly<Record<string, number>>;
  readonly version?: number;
  readonly updateID?: string;
  readonly info?: ServiceUpdate;
  readonly requestedBy?: { readonly name?: string; readonly githubLogin?: string };
}

/** Names the user in the other service. */
const requesterMember = 'import.requestedBy';

/** An update in the history of a DIY backend (pkg/backend/updates.go). */
export interface HistoryInfo {
  readonly kind: string;
  /** Seconds since the epoch. */
  readonly startTime: number;
  readonly endTime: number;
  readonly message: string;
  readonly environment: string;
  /** `{"key": {"string", "secret", "object"}}`. */
  readonly config: string;
  readonly result: string;
  readonly resourceChanges: string;
  /** Null if the history does not contain it: the CLI then writes 0. */
  readonly version: number | null;
}

/** Texts in the result are JSON. Throws TransferError. */
export function readHistoryInfo(name: string, text: string): HistoryInfo {
  let info: Readonly<Record<string, unknown>>;
  try {
    info = parseExactly(text) as Readonly<Record<string, unknown>>;
    if (typeof info !== 'object' || info === null) throw new TypeError('not an object');
  } catch (error) {
    throw new TransferError(`${name} is not a history file: ${(error as Error).message}`, { cause: error });
  }
  return {
    kind: String(info['kind'] ?? ''),
    ...{ startTime: secondsOf(info['startTime']), endTime: secondsOf(info['endTime']) },
    message: typeof info['message'] === 'string' ? storable(info['message']) : '',
    environment: JSON.stringify(info['environment'] ?? {}),
    config: JSON.stringify(toServiceConfig(info['config'] ?? {})),
    result: String(info['result'] ?? ''),
    resourceChanges: changeCounts(JSON.parse(JSON.stringify(info['resourceChanges'] ?? {}))),
    version: versionOf(info['version']),
  };
}

/** Only archives contain cancelled updates. */
export type StoredStatus = 'succeeded' | 'failed' | 'cancelled';

export function storedOutcome({ kind, result }: Pick<HistoryInfo, 'kind' | 'result'>): {
  kind: string;
  status: StoredStatus;
} {
  const kinds = new Map([...['update', 'refresh', 'destroy', 'import', 'rename'].map((each) => [each, each] as const)]);
  return {
    kind: kinds.get(kind) ?? 'update',
    status: result === 'succeeded' || result === 'cancelled' ? result : 'failed',
  };
}

/** The service may write the kind of a preview with a P, as in `Pupdate`. */
export function storedPreview({ kind, result }: Pick<HistoryInfo, 'kind' | 'result'>): {
  kind: string;
  status: StoredStatus;
} {
  if (kind === 'preview' || kind === 'Ppreview') return { ...storedOutcome({ kind, result }), kind: 'preview' };
  return storedOutcome({ kind: kind.replace(/^P/, ''), result });
}

/** Describes a state written by `pulumi state` or `pulumi stack import`, for which a DIY backend keeps no update. */
export function unrecordedInfo(at: Date): HistoryInfo {
  const seconds = Math.floor(at.getTime() / 1000);
  return {
    ...{ kind: 'import', startTime: seconds, endTime: seconds, result: 'succeeded' },
    message: 'State that the history of the source does not have',
    ...{ environment: '{}', config: '{}', resourceChanges: '{}', version: null },
  };
}

/** `reencrypt` gets the ciphertexts in order. */
export async function toHistoryConfig(
  stored: string,
  reencrypt: (ciphertexts: readonly string[]) => Promise<readonly string[]>,
): Promise<Record<string, unknown>> {
  const readable = cliConfig(JSON.parse(stored) as object) ?? stored;
  const values = Object.entries(parseExactly(readable) as Record<string, ConfigValue>).map(([key, value]) => {
    if (value.object) return [key, parseExactly(value.string)] as const;
    return [key, value.secret ? { secure: value.string } : value.string] as const;
  });
  const found: { secure: string }[] = [];
  for (const [, value] of values) collectSecrets(value, found);
  const ciphertexts = await reencrypt(found.map(({ secure }) => secure));
  found.forEach((each, at) => {
    each.secure = ciphertexts[at] as string;
  });
  return Object.fromEntries(values);
}

/**
 * Takes the form for the CLI or the one for consoles, which nests the fields in `info`. The requester becomes a member of the environment,
 * because users of another service are not users of this one.
 */
export function readServiceInfo(update: ServiceUpdate): HistoryInfo {
  const { info = update, requestedBy } = update;
  const requester = requestedBy?.githubLogin ?? requestedBy?.name ?? '';
  const environment = { ...(info.environment ?? {}), ...requestedIn(requester) };
  const texts = JSON.stringify({
    ...{ kind: info.kind, startTime: info.startTime, endTime: info.endTime, message: info.message },
    ...{ environment, result: info.result, resourceChanges: info.resourceChanges ?? {} },
  });
  const config = Object.entries(info.config ?? {}).map(([key, { object, secret, string }]) => [
    key,
    { string: String(string ?? ''), secret: secret === true, object: object === true },
  ]);
  return { ...readHistoryInfo('the update', texts), config: JSON.stringify(Object.fromEntries(config)) };
}

/** The environment is JSON text. */
export function withRequester(environment: string, requester: string | null): string {
  if (requester === null) return storable(environment);
  return JSON.stringify({ ...(JSON.parse(environment) as object), ...requestedIn(requester) });
}

/** Returns the requester in the source. */
export function requesterIn(environment: object): string | null {
  const requester = (environment as Readonly<Record<string, unknown>>)[requesterMember];
  return typeof requester === 'string' ? requester : null;
}

function requestedIn(requester: string): object {
  return requester === '' ? {} : { [requesterMember]: requester };
}

/** Null keeps a ciphertext. */
export async function reencryptConfig(
  stored: string,
  reencrypt: (ciphertexts: readonly string[]) => Promise<readonly (string | null)[]>,
): Promise<string> {
  const config = parseExactly(stored) as Record<string, unknown>;
  const found: { secure: string }[] = [];
  const values = Object.entries(config).map(([key, value]) => {
    if (!isConfigValue(value) || !value.secret) return { key, value, holder: null };
    const holder: unknown = value.object ? parseExactly(value.string) : { secure: value.string };
    collectSecrets(holder, found);
    return { key, value, holder };
  });
  if (found.length === 0) return stored;
  const replaced = await reencrypt(found.map(({ secure }) => secure));
  found.forEach((each, at) => {
    each.secure = replaced[at] ?? each.secure;
  });
  return JSON.stringify(
    Object.fromEntries(
      values.map(({ holder, key, value }) => {
        if (holder === null) return [key, value];
        const string = value.object ? JSON.stringify(holder) : (holder as { secure: string }).secure;
        return [key, { ...value, string }];
      }),
    ),
  );
}

function toServiceConfig(config: unknown): Record<string, ConfigValue> {
  const values = Object.entries(config as Record<string, unknown>).map(([key, value]): [string, ConfigValue] => {
    if (typeof value === 'string') return [key, { string: value, secret: false, object: false }];
    if (isSecret(value)) return [key, { string: value.secure, secret: true, object: false }];
    const secrets: { secure: string }[] = [];
    collectSecrets(value, secrets);
    // Numbers and booleans are kept as texts, like in the CLI.
    const isObject = typeof value === 'object' && value !== null && !exactJson.isRawJSON(value);
    return [key, { string: JSON.stringify(value), secret: secrets.length > 0, object: isObject }];
  });
  return Object.fromEntries(values);
}

function collectSecrets(value: unknown, found: { secure: string }[]): void {
  if (isSecret(value)) found.push(value);
  else if (typeof value === 'object' && value !== null && !exactJson.isRawJSON(value))
    for (const each of Object.values(value)) collectSecrets(each, found);
}

function isSecret(value: unknown): value is { secure: string } {
  if (typeof value !== 'object' || value === null) return false;
  const members = Object.entries(value);
  return members.length === 1 && members[0]?.[0] === 'secure' && typeof members[0][1] === 'string';
}

/** Like JSON.parse, but keeps numbers as written. */
function parseExactly(text: string): unknown {
  return exactJson.parse(text, (_key, value, { source }) =>
    typeof value === 'number' && source !== undefined ? exactJson.rawJSON(source) : value,
  );
}

/** More than any stack gets, and below the limit of Postgres's integers. */
const maxVersion = 1_000_000_000;

function versionOf(value: unknown): number | null {
  const version = numberOf(value);
  return Number.isInteger(version) && version > 0 && version <= maxVersion ? version : null;
}

function secondsOf(value: unknown): number {
  const seconds = numberOf(value);
  return Number.isSafeInteger(seconds) && seconds > 0 && seconds < 10_000_000_000 ? seconds : 0;
}

function numberOf(value: unknown): number {
  return Number(typeof value === 'object' && value !== null ? JSON.stringify(value) : value);
}

/** Postgres stores no NULs and no lone surrogates, but keeps their escapes in JSON texts. */
export function storable(text: string): string {
  return text.replaceAll('\0', '\ufffd').toWellFormed();
}
