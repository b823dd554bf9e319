const names = new Set(['HOME', 'LANG', 'PATH', 'TMPDIR', 'TZ']);
const prefixes = /^(DYLD|LC|LD)_/;

/** The variables that another program needs, without the secrets of our environment. */
export function childEnvironment(): NodeJS.ProcessEnv {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => names.has(name) || prefixes.test(name)));
}
