const names = new Set(['HOME', 'LANG', 'PATH', 'TMPDIR', 'TZ']);
const prefixes = /^(DYLD|LC|LD)_/;

/** What another program needs of our environment, which has secrets. */
export function childEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => names.has(name) || prefixes.test(name)));
}
