/** A JSON value. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** The members that tests use, and any others. */
export interface StateResource {
  [key: string]: Json | undefined;
  urn: string;
  type: string;
  custom: boolean;
  id?: string;
  delete?: boolean;
  inputs?: { [key: string]: Json };
  outputs?: { [key: string]: Json };
  dependencies?: string[];
  initErrors?: string[];
  pendingReplacement?: boolean;
}

/** Output of `pulumi stack export`. */
export interface ExportedState {
  [key: string]: unknown;
  version: number;
  deployment: {
    [key: string]: unknown;
    manifest: { [key: string]: Json };
    secrets_providers?: { type: string; state?: Json };
    resources?: StateResource[];
    pending_operations?: { type: string; resource: StateResource }[];
  };
}

const secretSignature = '4dabf18193072939515e22adb298388d';
const trailingUuid = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;
const droppedMembers = new Set(['created', 'modified', 'sourcePosition', 'stackTrace', 'secrets_providers']);

/**
 * Drops parts that may differ between backends or runs: times, positions, ciphertexts, the secrets provider and random ids. Plaintexts are
 * kept, so export with `showSecrets` to compare secrets. Resources are sorted by URN, because parallel steps finish in any order.
 * `keepOrder` keeps their order but moves the stack itself to the front, because it and the default providers are registered concurrently.
 */
export function normalizeState(state: ExportedState, options: { keepOrder?: boolean } = {}): Json {
  const plain = normalize(JSON.parse(JSON.stringify(state)) as Json, '') as { [key: string]: Json };
  const deployment = plain['deployment'] as { [key: string]: Json };
  const { time: _time, ...manifest } = (deployment['manifest'] ?? {}) as { [key: string]: Json };
  deployment['manifest'] = manifest;
  const resources = deployment['resources'];
  if (Array.isArray(resources)) resources.sort(options.keepOrder === true ? stackFirst : byText);
  return plain;
}

/** Returns the resources of one type, such as `holdfast:index:Thing`. */
export function resourcesOfType(state: ExportedState, type: string): StateResource[] {
  return (state.deployment.resources ?? []).filter((resource) => resource.type === type);
}

function normalize(value: Json, key: string): Json {
  if (typeof value === 'string')
    return key === 'id' || key === 'provider' ? value.replace(trailingUuid, '[uuid]') : value;
  if (Array.isArray(value)) return value.map((item) => normalize(item, ''));
  if (value === null || typeof value !== 'object') return value;
  const isSecret = secretSignature in value;
  const kept: { [key: string]: Json } = {};
  for (const name of Object.keys(value).sort()) {
    const member = value[name];
    if (member === undefined || droppedMembers.has(name)) continue;
    kept[name] = isSecret && name === 'ciphertext' ? '[ciphertext]' : normalize(member, name);
  }
  return kept;
}

function stackFirst(a: Json, b: Json): number {
  const [left, right] = [a, b].map((each) => (each as StateResource).type === 'pulumi:pulumi:Stack') as [
    boolean,
    boolean,
  ];
  return Number(right) - Number(left);
}

/** Sorts by URN, then by the whole text, because URNs are not unique during a replacement. */
function byText(a: Json, b: Json): number {
  const [left, right] = [a, b].map((each) => {
    const urn = (each as { [key: string]: Json })['urn'];
    return `${String(urn)} ${JSON.stringify(each)}`;
  }) as [string, string];
  return left < right ? -1 : Number(left > right);
}
