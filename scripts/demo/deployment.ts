import type { DemoStack } from './programs/program.ts';
import { Choices, type DemoResource } from './resources.ts';

export interface StateResource {
  readonly urn: string;
  readonly custom: boolean;
  readonly type: string;
  readonly id?: string;
  readonly inputs?: Readonly<Record<string, unknown>>;
  readonly outputs?: Readonly<Record<string, unknown>>;
  readonly parent?: string;
  readonly dependencies?: readonly string[];
  readonly provider?: string;
  readonly protect?: boolean;
}

const secretSignature = { '4dabf18193072939515e22adb298388d': '1b47061264138c4ac30d75fd1eb44270' };

/** A secret value in a state. `ciphertext`: as the server has encrypted the value's JSON text. */
export function secretValue(ciphertext: string): Record<string, string> {
  return { ...secretSignature, ciphertext };
}

/** The newest versions first. Some stacks have not upgraded yet. */
const providerVersions: Readonly<Record<string, readonly string[]>> = {
  aws: ['7.8.0', '7.8.0', '7.2.1', '6.83.0', '5.43.0'],
  gcp: ['9.1.0', '9.1.0', '8.41.1'],
  kubernetes: ['4.24.0', '4.24.0', '4.21.1', '3.30.2'],
  cloudflare: ['6.4.1', '5.49.0'],
  random: ['4.18.2'],
};
/** The package of the engine's own resources, which have no provider. */
const builtIn = 'pulumi';

/** The resources of a stack in the order in which the engine stores them: the stack, its providers, then the others. */
export function toState(
  { organization, project, stack }: DemoStack,
  resources: readonly DemoResource[],
  outputs: Readonly<Record<string, unknown>>,
): StateResource[] {
  const prefix = `urn:pulumi:${stack}::${project}`;
  const root = `${prefix}::pulumi:pulumi:Stack::${project}-${stack}`;
  // The type of a parent comes from a component, even if other resources have the same name.
  const types = new Map(resources.filter(({ custom }) => !custom).map(({ name, type }) => [name, type]));
  const urns = new Map<string, string>();
  for (const { name, parent, type } of resources) {
    const parentType = parent === null ? '' : `${types.get(parent)}$`;
    urns.set(key(type, name), `${prefix}::${parentType}${type}::${name}`);
  }
  // Several resources may have the same name: a dependency refers to the last preceding one.
  const latest = new Map<string, string>();
  const used = resources.filter(({ custom }) => custom).map(({ type }) => packageOf(type));
  const packages = [...new Set(used)].filter((name) => name !== builtIn);
  const providers = new Map(
    packages.map((name) => {
      const choices = new Choices(`${name} of ${organization}/${project}/${stack}`);
      const version = choices.of(providerVersions[name] ?? ['1.0.0']);
      const urn = `${prefix}::pulumi:providers:${name}::default_${version.replaceAll('.', '_')}`;
      return [name, { urn, version, id: idOf(urn, 32) }];
    }),
  );
  const state: StateResource[] = [{ urn: root, custom: false, type: 'pulumi:pulumi:Stack', outputs }];
  for (const { id, urn, version } of providers.values()) {
    const type = urn.split('::')[2] as string;
    state.push({ urn, custom: true, type, id, inputs: { version }, outputs: { version } });
  }
  for (const resource of resources) {
    const { computed, custom, dependsOn, inputs, name, parent, protect, type } = resource;
    const urn = urns.get(key(type, name)) as string;
    const provider = providers.get(packageOf(type));
    const parentUrn = parent === null ? root : (urns.get(key(types.get(parent) as string, parent)) as string);
    // A new revision is another resource in the cloud.
    const place = computed['revision'] === undefined ? urn : `${urn}:${computed['revision']}`;
    const dependencies = dependsOn.map((dependency) => latest.get(dependency)).filter((found) => found !== undefined);
    state.push({
      urn,
      custom,
      type,
      ...(custom ? { id: idOf(place, 17), inputs, outputs: { ...inputs, ...computed } } : { outputs: {} }),
      parent: parentUrn,
      ...(dependencies.length > 0 ? { dependencies } : {}),
      ...(custom && provider ? { provider: `${provider.urn}::${provider.id}` } : {}),
      ...(protect ? { protect } : {}),
    });
    latest.set(name, urn);
  }
  return state;
}

/** A deployment document with these resources. */
export function toDeployment(stack: DemoStack, resources: readonly StateResource[], url: string): object {
  return {
    manifest: { time: new Date().toISOString(), magic: '', version: 'v3.255.0' },
    secrets_providers: {
      type: 'service',
      state: { url, owner: stack.organization, project: stack.project, stack: stack.stack },
    },
    resources,
    metadata: {},
  };
}

export type Operation = 'same' | 'create' | 'update' | 'replace' | 'delete';

export interface Step {
  readonly operation: Operation;
  readonly before: StateResource | null;
  readonly after: StateResource | null;
}

/** Deletions last and in reverse order. */
export function stepsBetween(before: readonly StateResource[], after: readonly StateResource[]): Step[] {
  const earlier = new Map(before.map((resource) => [resource.urn, resource]));
  const kept = new Set(after.map(({ urn }) => urn));
  const steps = after.map((resource): Step => {
    const found = earlier.get(resource.urn);
    if (!found) return { operation: 'create', before: null, after: resource };
    const isSame = JSON.stringify(found) === JSON.stringify(resource);
    const operation = isSame ? 'same' : found.id === resource.id ? 'update' : 'replace';
    return { operation, before: found, after: resource };
  });
  const deletions = before.filter(({ urn }) => !kept.has(urn)).reverse();
  return [...steps, ...deletions.map((gone): Step => ({ operation: 'delete', before: gone, after: null }))];
}

function key(type: string, name: string): string {
  return `${type} ${name}`;
}

function packageOf(type: string): string {
  return type.slice(0, type.indexOf(':'));
}

/** An id that stays the same in all versions. */
function idOf(urn: string, length: number): string {
  let [low, high] = [0x811c9dc5, 0x1b873593];
  for (let at = 0; at < urn.length; at++) {
    low = Math.imul(low ^ urn.charCodeAt(at), 16_777_619) >>> 0;
    high = Math.imul(high ^ urn.charCodeAt(at), 2_246_822_519) >>> 0;
  }
  const text = low.toString(16).padStart(8, '0') + high.toString(16).padStart(8, '0');
  return text.repeat(3).slice(0, length);
}
