import { ListSearch } from '../ui/list-bar.tsx';
import { useDebouncedText } from './debounced-text.ts';

/**
 * The text is put into the URL once the user pauses. If the field took its value from the URL, each navigation would reset it, move the
 * caret and end compositions of input methods.
 */
export function ListTextFilter({
  label,
  onText,
  placeholder,
  value = '',
}: {
  readonly label: string;
  readonly placeholder: string;
  readonly value: string | undefined;
  readonly onText: (text: string | undefined) => void;
}) {
  const [draft, setDraft] = useDebouncedText(value, (text) => onText(text || undefined));
  return <ListSearch label={label} placeholder={placeholder} value={draft} onText={setDraft} />;
}
