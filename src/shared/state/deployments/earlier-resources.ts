import { urnKey } from './live-urns.ts';
import type { ResourceReferences } from './references.ts';

const providerType = /^pulumi:providers:[^:]+$/;

/** The CLI refuses to load a state in which a resource needs one that does not precede it (pkg/resource/stack/snapshot/integrity.go). */
export class EarlierResources {
  readonly #urns = new Set<string>();
  /** Keys of `urn::id`, because a reference to a provider names both. */
  readonly #providers = new Set<string>();

  add({ id, type, urn }: { readonly urn: string; readonly type: string; readonly id: string }): void {
    this.#urns.add(urnKey(urn));
    if (providerType.test(type)) this.#providers.add(urnKey(`${urn}::${id}`));
  }

  findMissing(references: ResourceReferences, { pendingReplacement = false } = {}): string | null {
    const { deletedWith, dependencies, parent, propertyDependencies, provider } = references;
    if (provider !== '' && !pendingReplacement && !this.#providers.has(urnKey(provider))) return provider;
    const needed = [parent, deletedWith, ...dependencies, ...propertyDependencies.flat()];
    return needed.find((each) => each !== '' && !this.#urns.has(urnKey(each))) ?? null;
  }
}
