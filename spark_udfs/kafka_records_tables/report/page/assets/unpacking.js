// Unpacks what packed_columns.py packed. Tables and dictionaries are unpacked when something asks for them first.

const bytesOf = (text) => {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  return bytes;
};

const inflated = async (id) => {
  const packed = new Blob([bytesOf(document.getElementById(id).textContent)]);
  return new Response(packed.stream().pipeThrough(new DecompressionStream("deflate-raw"))).arrayBuffer();
};

const textOf = async (id) => new TextDecoder().decode(await inflated(id));

const once = (make) => {
  const made = new Map();
  return (name) => {
    if (!made.has(name)) made.set(name, make(name));
    return made.get(name);
  };
};

const dictionary = once(async (name) =>
  document.getElementById(`texts-${name}`) ? JSON.parse(await textOf(`texts-${name}`)) : []
);

/** Where each text of a dictionary stands. */
const placesOf = once((texts) => new Map(texts.map((text, place) => [text, place])));

class Column {
  constructor(about, bytes, rows, texts) {
    this.name = about.name;
    this.kind = about.kind;
    this.about = about.about;
    this.texts = texts;
    this.described = about;
    this.bytes = bytes;
    this.rows = rows;
  }

  /** Numbers, or places in `texts`; what stands where there is no value means nothing. */
  get numbers() {
    if (this.made) return this.made;
    const { start, planes, least, differences } = this.described;
    const numbers = new Float64Array(this.rows);
    for (let plane = 0, unit = 1; plane < planes; plane++, unit *= 256) {
      const from = start + plane * this.rows;
      for (let i = 0; i < this.rows; i++) numbers[i] += this.bytes[from + i] * unit;
    }
    let sum = least;
    for (let i = 0; i < this.rows; i++) {
      const packed = numbers[i];
      if (differences) sum += packed % 2 ? -(packed + 1) / 2 : packed / 2;
      numbers[i] = differences ? sum : packed + least;
    }
    this.made = numbers;
    return numbers;
  }

  has(row) {
    const { start, planes, nulls } = this.described;
    return !nulls || ((this.bytes[start + planes * this.rows + (row >> 3)] >> (row & 7)) & 1) === 1;
  }

  at(row) {
    if (!this.has(row)) return null;
    const number = this.numbers[row];
    if (this.kind === "flag") return number === 1;
    return this.texts ? this.texts[number] : number;
  }

  /** Negative, 0 or positive, as rows are sorted: no value comes last. */
  compare(one, other) {
    const has = this.has(one);
    if (has !== this.has(other)) return has ? -1 : 1;
    if (!has) return 0;
    if (this.kind !== "long") return this.numbers[one] - this.numbers[other];
    const [a, b] = [BigInt(this.at(one)), BigInt(this.at(other))];
    return a < b ? -1 : a > b ? 1 : 0;
  }
}

class TableData {
  constructor(described, bytes, texts) {
    Object.assign(this, { name: described.name, rows: described.rows, allRows: described.allRows });
    this.described = described;
    this.columns = new Map(
      described.columns.map((each) => [each.name, new Column(each, bytes, described.rows, texts.get(each.name))])
    );
  }

  column(name) {
    return this.columns.get(name);
  }

  at(name, row) {
    return this.columns.get(name).at(row);
  }

  /** The rows whose column has this text, or this number. */
  rowsWith(name, value) {
    const column = this.columns.get(name);
    const sought = column.texts ? placesOf(column.texts).get(value) ?? -1 : value;
    const found = [];
    if (sought === -1 && column.texts) return found;
    const numbers = column.numbers;
    for (let row = 0; row < this.rows; row++) if (numbers[row] === sought && column.has(row)) found.push(row);
    return found;
  }
}

const report = { document: null };

const openTable = once(async (name) => {
  const described = report.document.tables.find((each) => each.name === name);
  if (!described) return null;
  const texts = new Map();
  for (const each of described.columns)
    if (["text", "long", "json"].includes(each.kind)) texts.set(each.name, await dictionary(each.name));
  return new TableData(described, new Uint8Array(await inflated(`table-${name}`)), texts);
});
