import { Ban, CircleCheck, CircleDashed, CircleDot, CircleX, LoaderCircle } from 'lucide-react';
import { Badge } from '../platform/ui/badge.tsx';
import styles from './status-badge.module.css';
import { viewStatus } from './update-status.ts';

/** The text says the same. */
export function StatusIcon({ size = 16, status }: { readonly status: string; readonly size?: number }) {
  const { tone, word } = viewStatus(status);
  const Icon = icons[tone];
  const isCancelled = word === 'Cancelled';
  return (
    <span className={`${styles['icon']} ${styles[tone]}`} title={word}>
      {isCancelled ? <Ban size={size} aria-hidden="true" /> : <Icon size={size} aria-hidden="true" />}
      <span className="unseen">{word}</span>
    </span>
  );
}

const icons = {
  neutral: CircleDot,
  success: CircleCheck,
  failure: CircleX,
  running: LoaderCircle,
  warning: CircleDashed,
} as const;

export function StatusBadge({ status }: { readonly status: string }) {
  const { tone, word } = viewStatus(status);
  const Icon = word === 'Cancelled' ? Ban : icons[tone];
  return (
    <Badge
      tone={tone}
      icon={<Icon className={tone === 'running' ? styles['turning'] : undefined} aria-hidden="true" />}
    >
      {word}
    </Badge>
  );
}
