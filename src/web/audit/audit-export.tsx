import { useEffect, useRef, useState } from 'react';
import { type AuditSearch, toAuditQuery } from '../platform/app/list-search.ts';
import styles from '../platform/app/settings-page.module.css';
import { apiClient } from '../platform/app/trpc.ts';
import { ActionDialog } from '../platform/ui/action-dialog.tsx';
import { saveFile } from '../platform/ui/save-file.ts';
import { useTimeDisplay, zoneOf } from '../platform/ui/time-display.ts';
import { retried } from './retried.ts';
import { auditExportTexts } from './texts.ts';

const types = { csv: 'text/csv', jsonl: 'application/jsonl' } as const;

export function ExportDialog({
  format,
  onClose,
  organization,
  search,
}: {
  readonly organization: string;
  readonly search: AuditSearch;
  readonly format: 'csv' | 'jsonl';
  readonly onClose: () => void;
}) {
  const [parts, setParts] = useState<number | null>(null);
  // After a failure, the export continues where it was, because the log records each part.
  const done = useRef<{ texts: string[]; cursor: string | null }>({ texts: [], cursor: null });
  const [error, setError] = useState<{ readonly message: string } | null>(null);
  const zone = zoneOf(useTimeDisplay());
  const isGone = useRef(false);
  useEffect(() => {
    isGone.current = false;
    return () => {
      isGone.current = true;
    };
  }, []);
  const collect = async (): Promise<void> => {
    const query = { organization, format, ...toAuditQuery(search, zone) };
    const { texts } = done.current;
    do {
      setParts(texts.length);
      const { cursor } = done.current;
      const part = await retried(() => apiClient.audit.export.mutate({ ...query, cursor }));
      if (isGone.current) return;
      texts.push(part.text);
      done.current.cursor = part.next;
    } while (done.current.cursor !== null);
    saveFile(new Blob(texts, { type: types[format] }), `audit-${organization}.${format}`);
    onClose();
  };
  const submit = (): void => {
    setError(null);
    collect().catch((problem: unknown) => {
      if (isGone.current) return;
      setParts(null);
      setError(problem instanceof Error ? problem : { message: String(problem) });
    });
  };
  return (
    <ActionDialog
      title={format === 'csv' ? auditExportTexts.exportAsCsv : auditExportTexts.exportAsJsonLines}
      description={auditExportTexts.description}
      action={auditExportTexts.export}
      error={error}
      isReady={parts === null}
      onSubmit={submit}
      onClose={onClose}
    >
      <p className={styles['note']} role="status">
        {parts === null ? null : parts === 0 ? auditExportTexts.exporting : auditExportTexts.exportingParts(parts)}
      </p>
    </ActionDialog>
  );
}
