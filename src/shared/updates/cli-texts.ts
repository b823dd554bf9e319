/** A configuration value (sdk/go/common/apitype/history.go). */
export interface ConfigValue {
  readonly string: string;
  readonly secret?: boolean;
  readonly object?: boolean;
}

/** `namespace:name` or `namespace:config:name` (sdk/go/common/resource/config/key.go). */
const keyPattern = /^[^:]*:(config:)?[^:]*$/;
const members: readonly string[] = ['string', 'secret', 'object'];
/** Go ignores the case of a member's name and also accepts the long s. */
const memberPattern = /^(string|secret|object)$/iu;
/** The ESC environments that the stack's file names. Their text in the environment is parsed by the CLI. */
export const environmentsName = 'stack.environments';

/**
 * Returns the part that the CLI can decode, as JSON text; null if that is everything. A single other value would keep the CLI from showing
 * any history.
 */
export function cliConfig(config: object): string | null {
  return partOf(config, (key, value) => keyPattern.test(key) && isConfigValue(value));
}

export function cliEnvironment(environment: object): string | null {
  return partOf(
    environment,
    (name, value) => typeof value === 'string' && (name !== environmentsName || isEnvironments(value)),
  );
}

export function isConfigValue(value: unknown): value is ConfigValue {
  if (!isObject(value)) return false;
  const { object = false, secret = false, string } = value;
  if (typeof string !== 'string' || typeof secret !== 'boolean' || typeof object !== 'boolean') return false;
  const isNamed = Object.keys(value).every((name) => members.includes(name) || !memberPattern.test(name));
  return isNamed && (!object || parsed(string) !== undefined);
}

function isEnvironments(text: string): boolean {
  const list = parsed(text);
  return (
    Array.isArray(list) && list.every((each) => isObject(each) && typeof each['id'] === 'string' && each['id'] !== '')
  );
}

function partOf(whole: object, isReadable: (name: string, value: unknown) => boolean): string | null {
  const entries = Object.entries(whole);
  const readable = entries.filter(([name, value]) => isReadable(name, value));
  return readable.length === entries.length ? null : JSON.stringify(Object.fromEntries(readable));
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}
