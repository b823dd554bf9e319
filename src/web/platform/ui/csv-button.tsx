import { Download } from 'lucide-react';
import { Button } from './button.tsx';
import { csvText } from './csv-text.ts';
import { saveFile } from './save-file.ts';
import { csvTexts } from './texts.tsx';

/** `read` returns the lines of the table, the names of the columns first. */
export function CsvButton({
  fileName,
  read,
}: {
  readonly fileName: string;
  readonly read: () => readonly (readonly (string | number)[])[];
}) {
  return (
    <Button
      kind="quiet"
      size="small"
      aria-label={csvTexts.save(fileName)}
      onClick={() => saveFile(new Blob([csvText(read())], { type: 'text/csv;charset=utf-8' }), fileName)}
    >
      <Download size={14} aria-hidden="true" />
      {csvTexts.csv}
    </Button>
  );
}
