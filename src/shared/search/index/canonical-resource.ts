import { replaceRanges } from '../../platform/json/member-edits.ts';
import { listSecrets } from '../../state/deployments/secret-values.ts';
import { providerUrn } from '../../state/deployments/urn.ts';
import type { ResourceView } from './resource-facts.ts';
import { shortHash, withoutStack } from './resource-key.ts';

/** What differs between two stacks of the same program without anybody having changed it. */
const ownMembers = new Set([
  ...['urn', 'id', 'outputs', 'created', 'modified', 'sourcePosition', 'stackTrace', 'initErrors', 'aliases'],
  ...['refreshBeforeUpdate', 'taint', 'hideDiff'],
]);
const sealed = Buffer.from('"[secret]"');

/** A resource as it is compared with the one of the same type and name in another stack. */
export interface CanonicalResource {
  readonly digest: string;
  /** Ciphertexts of its secrets, in their order; null for a secret without one. They are not part of the digest. */
  readonly secrets: readonly (string | null)[];
}

/** `withOutputs`: whether outputs are compared, too. */
export function canonicalOf(view: ResourceView, withOutputs: boolean): CanonicalResource {
  const secrets: (string | null)[] = [];
  const parts = comparedMembers(view, withOutputs).map((name) => {
    const text = view.raw(name) as Buffer;
    secrets.push(...listSecrets(text).map(({ ciphertext }) => ciphertext));
    return `${name}:${comparable(name, text)}`;
  });
  return { digest: shortHash(parts.join('\n')), secrets };
}

/** Names of members that two stacks have in common or not, in order. */
export function comparedMembers(view: ResourceView, withOutputs: boolean): string[] {
  return [...view.names]
    .filter((name) => (!ownMembers.has(name) || (withOutputs && name === 'outputs')) && view.raw(name) !== null)
    .sort();
}

/** Whether two values of a member, or of a property, are the same but for the stack's name and secrets. */
export function isSameInStacks(name: string, before: Buffer, after: Buffer): boolean {
  return before.equals(after) || comparable(name, before) === comparable(name, after);
}

function comparable(name: string, text: Buffer): string {
  const places = listSecrets(text);
  const plain =
    places.length === 0
      ? text
      : replaceRanges(
          text,
          places.map((place) => ({ ...place, by: sealed })),
        );
  const whole = plain.toString('utf8');
  // The id of a provider is its stack's own.
  if (name === 'provider') return withoutStack(providerUrn(JSON.parse(whole) as string));
  return whole.includes('urn:pulumi:') ? whole.replace(/urn:pulumi:[^"\\]*/g, withoutStack) : whole;
}
