import type { Command } from 'commander';

type Options = Readonly<Record<string, unknown>>;

const always = (): boolean => true;

/**
 * Commands that may run at a site that another one has replaced, with the condition on their options: they only read there, concern the
 * site itself, or need no running installation. All other commands are refused.
 */
export const commandsOfFencedSite: Readonly<Record<string, (options: Options) => boolean>> = {
  server: always,
  api: always,
  worker: always,
  setup: always,
  doctor: always,
  'support-bundle': always,
  'create-bucket': always,
  migrate: always,
  'upgrade-database': always,
  completion: always,
  top: always,
  wait: always,
  approve: always,
  drain: always,
  'debug list': always,
  'debug log-level': always,
  'debug cpu-profile': always,
  'debug heap-snapshot': always,
  'admin list': always,
  'admin token list': always,
  'admin token max-days': ({ preview }) => preview === true,
  'admin team list': always,
  'admin grant list': always,
  'admin issuer list': always,
  'admin rule list': always,
  'admin rule estimate': always,
  'admin approvals': always,
  'admin quotas': always,
  'admin check-keys': always,
  'admin audit verify': always,
  'admin journal': always,
  'admin deleted list': always,
  'admin read-only status': always,
  'admin fsck': ({ fix }) => fix !== true,
  'admin after-restore': always,
  'admin take-over': always,
  'admin site status': always,
  'admin site promote': always,
  'admin site demote': always,
  // With --keep, the command would delete backups of the other site.
  'backup create': ({ keep }) => keep === undefined,
  'backup list': always,
  'backup verify': always,
  'backup restore': always,
  'blobs status': always,
  import: ({ apply }) => apply !== true,
  export: always,
  // These commands call the API of a server.
  plan: always,
  apply: always,
  'export-config': always,
  schema: always,
  'bundle status': always,
  'bundle return': ({ apply }) => apply !== true,
};

export function runsAtFencedSite(command: Command): boolean {
  return commandsOfFencedSite[pathOf(command)]?.(command.opts()) === true;
}

export function pathOf(command: Command): string {
  const words: string[] = [];
  for (let each: Command | null = command; each?.parent; each = each.parent) words.unshift(each.name());
  return words.join(' ');
}
