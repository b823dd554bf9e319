/** Before it has a place in a stack. */
export interface DemoResource {
  readonly type: string;
  readonly name: string;
  /** Name of the parent resource; null: the stack itself. */
  readonly parent: string | null;
  readonly dependsOn: readonly string[];
  readonly custom: boolean;
  readonly protect: boolean;
  readonly inputs: Readonly<Record<string, unknown>>;
  /** Outputs that the provider adds to the inputs. */
  readonly computed: Readonly<Record<string, unknown>>;
}

/** Collects the resources of a program. */
export class ResourceList {
  readonly resources: DemoResource[] = [];

  /** Groups the resources that name it as their parent. Returns its name. */
  component(type: string, name: string, parent: string | null = null): string {
    this.#add(type, name, { parent, custom: false });
    return name;
  }

  add(
    type: string,
    name: string,
    inputs: Readonly<Record<string, unknown>>,
    options: {
      parent?: string | null;
      dependsOn?: readonly string[];
      protect?: boolean;
      computed?: Readonly<Record<string, unknown>>;
    } = {},
  ): string {
    this.#add(type, name, { inputs, ...options });
    return name;
  }

  /** Reads the outputs of another stack, named in full. */
  reads(stack: string): void {
    this.#add('pulumi:pulumi:StackReference', stack, { inputs: { name: stack }, computed: { outputs: {} } });
  }

  #add(type: string, name: string, rest: Partial<DemoResource>): void {
    const usual = { parent: null, dependsOn: [], custom: true, protect: false, inputs: {}, computed: {} };
    this.resources.push({ ...usual, ...rest, type, name });
  }
}

/** The same in every run. */
export class Choices {
  #state: number;

  constructor(seed: string) {
    let hash = 2_166_136_261;
    for (const character of seed) hash = Math.imul(hash ^ character.charCodeAt(0), 16_777_619) >>> 0;
    this.#state = hash || 1;
  }

  /** A number from 0 up to, but not including, 1. */
  fraction(): number {
    this.#state = (this.#state + 0x6d2b79f5) >>> 0;
    let mixed = this.#state;
    mixed = Math.imul(mixed ^ (mixed >>> 15), mixed | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  }

  /** A whole number from `low` to `high`. */
  between(low: number, high: number): number {
    return low + Math.floor(this.fraction() * (high - low + 1));
  }

  of<T>(list: readonly T[]): T {
    return list[Math.floor(this.fraction() * list.length)] as T;
  }

  /** Whether an event with this probability happens. */
  happens(probability: number): boolean {
    return this.fraction() < probability;
  }

  /** `length` hexadecimal digits. */
  hex(length: number): string {
    let text = '';
    while (text.length < length)
      text += Math.floor(this.fraction() * 0x1_0000_0000)
        .toString(16)
        .padStart(8, '0');
    return text.slice(0, length);
  }
}
