import { Link, useSearch } from '@tanstack/react-router';
import { CircleAlert, LoaderCircle, Snowflake, Unplug, Waves, X } from 'lucide-react';
import type { StackStatus } from './stack-filter.ts';
import styles from './stack-filter-bar.module.css';
import { StackListTools } from './stack-list-tools.tsx';
import type { Suggesting } from './stack-suggestions.ts';
import { StackTextFilter } from './stack-text-filter.tsx';
import { stackFilterTexts } from './texts.tsx';

const statuses = [
  { status: undefined, name: stackFilterTexts.all, icon: null },
  { status: 'running', name: stackFilterTexts.running, icon: <LoaderCircle aria-hidden="true" /> },
  { status: 'failed', name: stackFilterTexts.failed, icon: <CircleAlert aria-hidden="true" /> },
  { status: 'interrupted', name: stackFilterTexts.interrupted, icon: <Unplug aria-hidden="true" /> },
  { status: 'drifted', name: stackFilterTexts.drifted, icon: <Waves aria-hidden="true" /> },
  { status: 'frozen', name: stackFilterTexts.frozen, icon: <Snowflake aria-hidden="true" /> },
] as const satisfies readonly { status: StackStatus | undefined; name: string; icon: unknown }[];

/** The filter above the list. It is in the URL, so that it can be shared. */
export function StackFilterBar({ items }: { readonly items: readonly Suggesting[] }) {
  const search = useSearch({ strict: false });
  return (
    <search className={styles['bar']}>
      <StackTextFilter items={items} />
      <nav className={styles['statuses']} aria-label={stackFilterTexts.status}>
        {statuses.map(({ icon, name, status }) => (
          <Link
            key={name}
            to="."
            search={(before) => ({ ...before, status })}
            className={styles['status']}
            activeOptions={{ exact: true }}
            activeProps={{}}
            aria-current={search.status === status ? 'true' : undefined}
          >
            {icon}
            {name}
          </Link>
        ))}
      </nav>
      <Chip part="project" value={search.project} />
      <Chip part="tag" value={search.tag} />
      <StackListTools />
    </search>
  );
}

/** The part came from another page. */
function Chip({ part, value }: { readonly part: 'project' | 'tag'; readonly value: string | undefined }) {
  if (value === undefined) return null;
  return (
    <Link
      to="."
      search={(before) => ({ ...before, [part]: undefined })}
      activeOptions={{ exact: true }}
      className={styles['chip']}
      activeProps={{}}
      aria-label={stackFilterTexts.remove(stackFilterTexts.parts[part], value)}
    >
      <span className={styles['chipName']}>{stackFilterTexts.parts[part]}</span>
      <span className={styles['chipValue']}>{value}</span>
      <X size={13} aria-hidden="true" />
    </Link>
  );
}
