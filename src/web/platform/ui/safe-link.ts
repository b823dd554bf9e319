/** Web addresses only. Null for all others, such as `javascript:`. */
export function safeLink(text: string | null | undefined): string | null {
  if (text === null || text === undefined || text.length > 2048) return null;
  let url: URL;
  try {
    url = new URL(text.trim());
  } catch {
    return null;
  }
  const isWeb = url.protocol === 'https:' || url.protocol === 'http:';
  // `https://bank.example@evil.example` reads like another site.
  return isWeb && url.username === '' && url.password === '' ? url.href : null;
}

/** The address is on a forge, from the Git remote. */
export function repositoryLink(repository: string | null, commit: string | null = null): string | null {
  if (repository === null) return null;
  const ssh = /^(?:ssh:\/\/)?git@([\w.-]+)[:/]([\w./-]+?)(?:\.git)?$/.exec(repository);
  const base = safeLink(ssh === null ? repository.replace(/\.git$/, '') : `https://${ssh[1]}/${ssh[2]}`);
  if (base === null || commit === null) return base;
  return /^[0-9a-f]{7,64}$/.test(commit) ? `${base.replace(/\/$/, '')}/commit/${commit}` : null;
}

/** Like `repositoryLink`, from the parts that the CLI sends: the host and the name, such as `acme/web`. */
export function forgeLink(
  host: string | null | undefined,
  name: string | null | undefined,
  commit: string | null = null,
) {
  if (!name) return null;
  return host && /^[\w.-]+$/.test(host)
    ? repositoryLink(`https://${host}/${name}`, commit)
    : repositoryLink(name, commit);
}
