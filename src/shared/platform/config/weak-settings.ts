import { isPlaceholder, isWeakKey } from '../crypto/weak-secrets.ts';

/**
 * Returns a problem for each secret in the settings that is a placeholder or obviously not random, without quoting it.
 */
export function findWeakSecrets(settings: Readonly<Record<string, string>>): string[] {
  const problems: string[] = [];
  // Only the first key: the others only unwrap and must stay usable until `rewrap-keys` has run.
  const [, key] = (settings['HOLDFAST_MASTER_KEYS'] ?? '').split(',')[0]?.split(':') ?? [];
  const bytes = Buffer.from(key ?? '', 'base64');
  // Malformed keys are reported elsewhere.
  if (bytes.length === 32 && isWeakKey(bytes))
    problems.push('HOLDFAST_MASTER_KEYS: the first key is not random; make one with: openssl rand -base64 32');
  for (const name of ['HOLDFAST_DATABASE_URL', 'HOLDFAST_DATABASE_REPLICA_URL', 'HOLDFAST_REDIS_URL']) {
    const password = /^[a-z+]+:\/\/[^:@/]*:([^@]*)@/.exec(settings[name] ?? '')?.[1];
    if (password !== undefined && isPlaceholder(password))
      problems.push(`${name}: the password is a placeholder from an example; choose another`);
  }
  return problems;
}
