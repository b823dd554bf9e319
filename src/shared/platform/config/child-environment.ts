const names = new Set(['HOME', 'LANG', 'PATH', 'TMPDIR', 'TZ']);
const prefixes = /^(DYLD|LC|LD)_/;

/** Omits the secrets of our environment. */
export function childEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => names.has(name) || prefixes.test(name)));
}
