import type { Json } from './pulumi-state.ts';

/** Written as JSON, a subset of YAML. */
export interface PulumiProgram {
  name: string;
  runtime: 'yaml';
  description?: string;
  config?: { [key: string]: Json };
  variables?: { [key: string]: Json };
  resources: {
    [name: string]: {
      type: string;
      properties?: { [key: string]: Json };
      options?: { [key: string]: Json };
    };
  };
  outputs?: { [key: string]: Json };
}

/** Inputs of the test provider's `holdfast:index:Thing`; any may be a `reference`. */
export interface ThingInputs {
  value?: Json;
  /** A change replaces the thing. */
  replaceOn?: Json;
  deleteBeforeReplace?: boolean;
  secretValue?: Json;
  failCreate?: boolean;
  failUpdate?: boolean;
  /** Takes effect only once it is in the state. The list in TestCloud.control takes effect immediately. */
  failDelete?: boolean;
  partialCreate?: boolean;
  slowMs?: number;
  /** Bytes of UTF-8 in the output `blob`. */
  size?: number;
}

/** Options of `stashProgram`. */
export interface StashProgramOptions {
  project?: string;
  count: number;
  /** Returns the input of the resource at an index. Default: a short text with the index. */
  inputOf?: (index: number) => Json;
  /** Makes each resource depend on the previous one. */
  chained?: boolean;
}

/** Many `pulumi:index:Stash` resources, which need no plugin. CLI 3.142 does not support them. */
export function stashProgram(options: StashProgramOptions): PulumiProgram {
  const { project = 'holdfast-e2e', count, inputOf = (index) => `input of ${index}`, chained = false } = options;
  const resources: PulumiProgram['resources'] = {};
  for (let index = 0; index < count; index++) {
    resources[stashName(index)] = {
      type: 'pulumi:index:Stash',
      properties: { input: inputOf(index) },
      ...(chained && index > 0 ? { options: { dependsOn: [reference(stashName(index - 1))] } } : {}),
    };
  }
  return { name: project, runtime: 'yaml', resources };
}

/** Returns the logical name of a resource of `stashProgram`. */
function stashName(index: number): string {
  return `stash-${String(index).padStart(5, '0')}`;
}

/** Options of `thingProgram`. */
export interface ThingProgramOptions {
  project?: string;
  things: { [name: string]: ThingInputs };
  /** By thing, such as `{ b: { protect: true } }`. */
  options?: { [name: string]: { [key: string]: Json } };
  outputs?: { [key: string]: Json };
}

export function thingProgram(options: ThingProgramOptions): PulumiProgram {
  const resources: PulumiProgram['resources'] = {};
  for (const [name, inputs] of Object.entries(options.things)) {
    const resourceOptions = options.options?.[name];
    resources[name] = {
      type: 'holdfast:index:Thing',
      properties: { ...inputs },
      ...(resourceOptions === undefined ? {} : { options: resourceOptions }),
    };
  }
  return {
    name: options.project ?? 'holdfast-e2e',
    runtime: 'yaml',
    resources,
    ...(options.outputs === undefined ? {} : { outputs: options.outputs }),
  };
}

/** Returns a reference to a resource or, as `reference('a', 'value')`, to one of its outputs. */
export function reference(resource: string, output?: string): string {
  return output === undefined ? `\${${resource}}` : `\${${resource}.${output}}`;
}

/** Marks a value of a program as secret. */
export function secret(value: Json): Json {
  return { 'fn::secret': value };
}

/** Each thing has the value of the previous one. */
export function chain(value: string): { readonly [name in 'a' | 'b' | 'c']: ThingInputs } {
  return { a: { value }, b: { value: reference('a', 'value') }, c: { value: reference('b', 'value') } };
}
