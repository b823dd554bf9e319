import { createHash, type Hash } from 'node:crypto';
import { denseSliceBytes, nextSlice, Slices } from '../../../shared/platform/slices/slices.ts';
import type { ResourceView } from '../../../shared/search/resource-facts.ts';
import { withoutStack } from '../../../shared/search/resource-key.ts';
import { hashWithoutStack } from '../../../shared/search/stackless-text.ts';
import { providerUrn } from '../../../shared/state/deployments/urn.ts';
import { listSecretsInSlices } from './redacted-json.ts';

/** These members differ between two stacks of the same program even without a change. */
const ownMembers = new Set([
  ...['urn', 'id', 'outputs', 'created', 'modified', 'sourcePosition', 'stackTrace', 'initErrors', 'aliases'],
  ...['refreshBeforeUpdate', 'taint', 'hideDiff'],
]);
/** A longer reference is compared unchanged. */
const maxProviderBytes = 64 * 1024;
/** More members are compared in their own order. A resource has about 30. */
const maxSorted = 1_000;
/** The cost of a secret within a time slice, besides its bytes. */
const secretBytes = 200;

/** The form in which a resource is compared with the resource of the same type and name in another stack. */
export interface CanonicalResource {
  readonly digest: string;
  /** Ciphertexts in their order; null for a secret without one. Not part of the digest. */
  readonly secrets: readonly (string | null)[];
}

/** Takes slices of the event loop. */
export async function canonicalOf(view: ResourceView, withOutputs: boolean): Promise<CanonicalResource> {
  const secrets: (string | null)[] = [];
  const slices = new Slices(denseSliceBytes);
  const hash = createHash('sha256');
  for (const name of await comparedMembers(view, withOutputs)) {
    hash.update(`\n${name}:`);
    for (const secret of await hashComparable(hash, name, view.raw(name) as Buffer, slices)) secrets.push(secret);
    await slices.spend(secretBytes);
  }
  return { digest: hash.digest('base64url'), secrets };
}

/** Names of the members to compare, in order. */
export async function comparedMembers(view: ResourceView, withOutputs: boolean): Promise<string[]> {
  const names: string[] = [];
  let seen = 0;
  for (const name of view.names) {
    if ((!ownMembers.has(name) || (withOutputs && name === 'outputs')) && view.raw(name) !== null) names.push(name);
    if (++seen % maxSorted === 0) await nextSlice();
  }
  return names.length > maxSorted ? names : names.sort();
}

/** Ignores the stack's name and secrets. Takes slices of the event loop. */
export async function isSameInStacks(name: string, before: Buffer, after: Buffer): Promise<boolean> {
  return before.equals(after) || (await comparableDigest(name, before)) === (await comparableDigest(name, after));
}

async function comparableDigest(name: string, text: Buffer): Promise<string> {
  const hash = createHash('sha256');
  await hashComparable(hash, name, text, new Slices(denseSliceBytes));
  return hash.digest('base64');
}

/** Leaves out secrets and the stack's name. Returns the ciphertexts. */
async function hashComparable(hash: Hash, name: string, text: Buffer, slices: Slices): Promise<(string | null)[]> {
  // The id of a provider is specific to its stack.
  if (name === 'provider' && text[0] === 0x22 && text.length <= maxProviderBytes) {
    hash.update(withoutStack(providerUrn(JSON.parse(text.toString('utf8')) as string)));
    return [];
  }
  const spans = await listSecretsInSlices(text);
  let from = 0;
  for (const { end, start } of spans) {
    await hashWithoutStack(hash, text.subarray(from, start), slices);
    hash.update('"[secret]"');
    from = end;
    await slices.spend(secretBytes);
  }
  await hashWithoutStack(hash, text.subarray(from), slices);
  return spans.map(({ ciphertext }) => ciphertext);
}
