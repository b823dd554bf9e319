import path from 'node:path';

/** What `--entries` is by default: the sources of this checkout. */
export const thisRelease = `now=${path.join(import.meta.dirname, '../../bin/holdfast.js')}`;

interface Release {
  readonly name: string;
  /** What Node runs. */
  readonly program: string;
  readonly nodeFlags?: string[];
}

/** Reads `--entries name=path,name=path|--flag --flag`. `flags` are for entries without flags of their own. */
export function releasesOf(entries: string, flags?: string): Release[] {
  return entries.split(',').map((entry) => {
    const [place = '', own = flags] = entry.split('|');
    const [name = '', file = ''] = place.split('=');
    const nodeFlags = own?.split(' ').filter(Boolean);
    return { name, program: path.resolve(file), ...(nodeFlags ? { nodeFlags } : {}) };
  });
}
