import { isPlaceholder, isWeakKey } from '../crypto/weak-secrets.ts';

/** Secrets in the settings that come from an example or were plainly not made by chance, as problems that do not quote them. */
export function findWeakSecrets(settings: Readonly<Record<string, string>>): string[] {
  const problems: string[] = [];
  // The others only unwrap: they must stay usable until `rewrap-keys` has been run.
  const [, key] = (settings['HOLDFAST_MASTER_KEYS'] ?? '').split(',')[0]?.split(':') ?? [];
  const bytes = Buffer.from(key ?? '', 'base64');
  // What is no key at all is told elsewhere.
  if (bytes.length === 32 && isWeakKey(bytes))
    problems.push('HOLDFAST_MASTER_KEYS: the first key is not random; make one with: openssl rand -base64 32');
  for (const name of ['HOLDFAST_DATABASE_URL', 'HOLDFAST_REDIS_URL']) {
    const password = /^[a-z]+:\/\/[^:@/]*:([^@]*)@/.exec(settings[name] ?? '')?.[1];
    if (password !== undefined && isPlaceholder(password))
      problems.push(`${name}: the password is the one of an example; choose another`);
  }
  return problems;
}
