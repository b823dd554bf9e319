/** A name may contain any text, even `::`. */
export interface ResourceName {
  stack: string;
  project: string;
  /** Types of the parents, the outermost first. */
  parentTypes: readonly string[];
  type: string;
  name: string;
}

/** Reads a URN. Returns null for a text that is no URN. */
export function parseUrn(urn: string): ResourceName | null {
  const match = /^urn:pulumi:([^:]*(?::(?!:)[^:]*)*)::(.*?)::(.*?)::([\s\S]*)$/.exec(urn);
  if (match === null) return null;
  const [, stack = '', project = '', qualified = '', name = ''] = match;
  const types = qualified.split('$');
  return { stack, project, parentTypes: types.slice(0, -1), type: types.at(-1) ?? '', name };
}

/** The text itself, if it is no URN. */
export function nameInUrn(urn: string): string {
  return parseUrn(urn)?.name ?? urn;
}

/** As the CLI shows it: `aws:s3/bucket:Bucket` becomes `aws:s3:Bucket`. */
export function shortType(type: string): string {
  const [pack, module, member, ...more] = type.split(':');
  if (module === undefined || member === undefined || more.length > 0) return type;
  const slash = module.lastIndexOf('/');
  if (slash < 0) return type;
  const last = module.slice(slash + 1);
  const isMember = last.toLowerCase() === member.toLowerCase();
  return isMember ? `${pack}:${module.slice(0, slash)}:${member}` : type;
}

/** Name of the package that a type is from. */
export function packageOf(type: string): string {
  return type.split(':')[0] ?? type;
}
