/** Secrets that one call decrypts. */
const secretBatch = 500;

/** Ciphertexts of each resource, in order; null: the secret is not compared. */
export type SecretsOfResources = ReadonlyMap<string, readonly (string | null)[]>;

/** Ciphertexts at the same position of a resource that both stacks have. */
export interface SecretPair {
  readonly key: string;
  readonly at: number;
  readonly before: string;
  readonly after: string;
}

function* secretPairs(before: SecretsOfResources, after: SecretsOfResources): Generator<SecretPair> {
  for (const [key, secrets] of after) {
    const others = before.get(key);
    // If the numbers of secrets differ, their positions do not correspond; the resource differs anyway.
    if (others?.length !== secrets.length) continue;
    for (const [at, secret] of secrets.entries()) {
      const other = others[at] ?? null;
      if (secret !== null && other !== null) yield { key, at, before: other, after: secret };
    }
  }
}

/** The plaintexts of a batch are in memory together. */
export function* secretBatches(before: SecretsOfResources, after: SecretsOfResources): Generator<SecretPair[]> {
  let batch: SecretPair[] = [];
  for (const pair of secretPairs(before, after)) {
    if (batch.push(pair) < secretBatch) continue;
    yield batch;
    batch = [];
  }
  if (batch.length > 0) yield batch;
}

/** Counts secrets in resources that both stacks have. */
export function countShared(before: SecretsOfResources, after: SecretsOfResources): number {
  let count = 0;
  for (const [key, { length }] of after) count += Math.min(length, before.get(key)?.length ?? 0);
  return count;
}
