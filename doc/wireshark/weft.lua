-- SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
--
-- A dissector for Wireshark and tshark: the protocol of libfabric's provider tcp, that of upstream and the extensions of
-- weft (prov/tcp/wire/wire.h), and the packets of ofi_rxm over it (prov/rxm/wire.h).
--
--   tshark -X lua_script:weft.lua -r FILE -V            or copy this file into Wireshark's folder of Lua plugins
--
-- A stream is recognised by its handshake. If that is not in the capture, the preference "ports" names its port. Files
-- that FI_CAPTURE writes (fi_capture(7)) have it.
--
-- State: one table for each TCP stream, filled while packets are seen for the first time, in their order: where the
-- handshake ends, and what both ends have announced in it.

local weft = Proto("weft", "libfabric tcp")
local rxm = Proto("weft.rxm", "libfabric rxm")

---- names ----

local CM_TYPES = { [0] = "CONNREQ", [1] = "CONNRESP", [6] = "NACK", [32] = "CHALLENGE", [33] = "PROOF", [34] = "ADMIT" }

local OPS = {
	[0] = "MSG", [1] = "TAG", [2] = "READ_REQ", [3] = "READ_RSP", [4] = "WRITE", [5] = "TAG_RTS", [6] = "CTS",
	[7] = "DATA", [32] = "ACK", [33] = "CREDIT", [34] = "XRTS", [35] = "XCTS", [36] = "XDATA", [37] = "READ_ERR",
	[38] = "XCANCEL", [39] = "AMO_REQ", [40] = "AMO_RSP", [41] = "COLL", [42] = "REFUSED", [43] = "DIRECT",
	[44] = "DIRECT_ANSWER", [45] = "XDATA_WIDE", [48] = "PARK", [49] = "PARK_YES", [50] = "PARK_NO",
	[51] = "PARK_STAY",
}

local EXTENSIONS = {	-- TCP_EXT_*, from bit 0 on
	"BASE", "AMO", "AUTH", "CTX", "COLL", "PARK", "RESUME", "TAMO", "GROUP", "COMMIT", "RIOV", "SHORT", "MSG", "NAK",
	"DIRECT", "WHO",
}
local EXT_MAGIC, EXT_AUTH, EXT_CTX, EXT_MSG, EXT_WHO = 0x5766, 0x0004, 0x0008, 0x1000, 0x8000

local FLAGS = {
	{ 0x0001, "CQ_DATA" }, { 0x0004, "DELIVERY" }, { 0x0008, "COMMIT" }, { 0x0010, "TAGGED" }, { 0x0020, "GROUP" },
	{ 0x0080, "LAYER_TAG" },
}
local FLAG_CQ_DATA, FLAG_GROUP, FLAG_LAYER_TAG, FLAGS_PIECES = 0x0001, 0x0020, 0x0080, 0xf000

local REFUSALS = {
	[0] = "none", [1] = "a key is wanted", [2] = "no key here", [3] = "wrong key", [4] = "no such receive context",
	[5] = "the extension is needed", [6] = "an RDM endpoint listens", [7] = "a MSG endpoint listens",
}

local AMO_KINDS = { [0] = "BASE", [1] = "FETCH", [2] = "COMPARE" }
local AMO_OPS = {
	[0] = "FI_MIN", "FI_MAX", "FI_SUM", "FI_PROD", "FI_LOR", "FI_LAND", "FI_BOR", "FI_BAND", "FI_LXOR", "FI_BXOR",
	"FI_ATOMIC_READ", "FI_ATOMIC_WRITE", "FI_CSWAP", "FI_CSWAP_NE", "FI_CSWAP_LE", "FI_CSWAP_LT", "FI_CSWAP_GE",
	"FI_CSWAP_GT", "FI_MSWAP",
}
local DATATYPES = {
	[0] = "FI_INT8", "FI_UINT8", "FI_INT16", "FI_UINT16", "FI_INT32", "FI_UINT32", "FI_INT64", "FI_UINT64", "FI_FLOAT",
	"FI_DOUBLE", "FI_FLOAT_COMPLEX", "FI_DOUBLE_COMPLEX", "FI_LONG_DOUBLE", "FI_LONG_DOUBLE_COMPLEX",
}

local RXM_TYPES = {
	[0] = "EAGER", [1] = "SEG", [2] = "RNDV_REQ", [3] = "RNDV_DONE", [4] = "ATOMIC", [5] = "ATOMIC_RSP", [6] = "CREDIT",
	[7] = "RNDV_WR", [8] = "RNDV_WDONE", [32] = "ACK", [33] = "WRITTEN", [34] = "COLL_ABORT",
}
local RXM_OPS = { [0] = "MSG", [1] = "TAGGED", [6] = "AMO", [7] = "AMO_FETCH", [8] = "AMO_COMPARE", [32] = "COLL" }

---- fields ----

local f, e = {}, {}

local function field(name, kind, text, ...)
	f[name] = ProtoField[kind]("weft." .. name, text, ...)
end

field("cm.version", "uint8", "Version")
field("cm.type", "uint8", "Type", base.DEC, CM_TYPES)
field("cm.len", "uint16", "Bytes of private data")
field("cm.ext", "uint32", "Extensions", base.HEX)
field("cm.incarnation", "uint64", "Incarnation", base.HEX)
field("cm.eager_max", "uint32", "Longest message without announcement")
field("cm.refusal", "uint32", "Reason", base.DEC, REFUSALS)
field("cm.credit", "uint32", "Credit")
field("cm.order", "string", "Byte order of frames")
field("cm.data", "bytes", "Private data")
field("cm.rdm.version", "uint8", "Version")
field("cm.rdm.features", "uint8", "Features", base.HEX)
field("cm.rdm.port", "uint16", "Port of the sender's listener")
field("cm.rdm.pid", "uint32", "Process of the sender")
field("cm.name.family", "uint16", "Family of the advertised address")
field("cm.name.port", "uint16", "Port of the advertised address")
field("cm.name.addr", "bytes", "Advertised address")
field("cm.rx_ctx", "uint16", "Receive context")
field("cm.tx_ctx", "uint16", "Transmit context", base.HEX)
field("cm.nonce", "bytes", "Nonce")
field("cm.mac", "bytes", "Proof of the key (HMAC-SHA256)")
field("version", "uint8", "Version")
field("op", "uint8", "Type", base.DEC, OPS)
field("flags", "uint16", "Flags", base.HEX)
field("op_data", "uint8", "op_data")
field("amo_kind", "uint8", "Kind of atomic", base.DEC, AMO_KINDS)
field("rma_iov_cnt", "uint8", "Remote buffers")
field("hdr_size", "uint8", "Bytes of the header")
field("id", "uint8", "Number")
field("size", "uint64", "Bytes of the frame")
field("cq_data", "uint64", "CQ data", base.HEX)
field("tag", "uint64", "Tag", base.HEX)
field("layer_tag", "uint64", "Tag of a layer above", base.HEX)
field("group", "uint64", "Peer group")
field("rma.addr", "uint64", "Remote address or offset", base.HEX)
field("rma.len", "uint64", "Remote length")
field("rma.key", "uint64", "Remote key", base.HEX)
field("len", "uint64", "Bytes of the message")
field("msg_id", "uint32", "Message")
field("rx_id", "uint32", "Receive", base.HEX)
field("ack.cnt", "uint32", "Frames delivered")
field("err", "uint32", "Error (FI_E*)")
field("credit", "uint64", "Bytes of credit returned")
field("number", "uint64", "Number among the quiet frames")
field("amo.op", "uint32", "Operation", base.DEC, AMO_OPS)
field("amo.datatype", "uint32", "Datatype", base.DEC, DATATYPES)
field("direct.addr", "uint64", "Address of the cookie", base.HEX)
field("direct.cookie", "bytes", "Cookie")
field("direct.piece_size", "uint64", "Bytes of a piece's description")
field("piece.addr", "uint64", "Address in the sender's memory", base.HEX)
field("piece.len", "uint64", "Bytes there")
field("payload", "bytes", "Payload")
weft.fields = f

e.unknown = ProtoExpert.new("weft.unknown", "Type of frame is unknown", expert.group.PROTOCOL, expert.severity.WARN)
e.header = ProtoExpert.new("weft.header", "Length of the header does not fit its type", expert.group.MALFORMED,
			   expert.severity.ERROR)
e.size = ProtoExpert.new("weft.size", "Length of the frame is not valid", expert.group.MALFORMED, expert.severity.ERROR)
weft.experts = e

local r = {}

local function rxm_field(name, kind, text, ...)
	r[name] = ProtoField[kind]("weft.rxm." .. name, text, ...)
end

rxm_field("type", "uint8", "Type", base.DEC, RXM_TYPES)
rxm_field("ctrl_version", "uint8", "Version of the control header")
rxm_field("seg_size", "uint16", "Bytes in the segment")
rxm_field("seg_no", "uint32", "Number of the segment")
rxm_field("conn_id", "uint64", "Connection, or credit (weft)", base.HEX)
rxm_field("msg_id", "uint64", "Message")
rxm_field("ctrl_data", "uint64", "Control data", base.HEX)
rxm_field("op_version", "uint8", "Version of the operation")
rxm_field("rx_index", "uint8", "Receive context")
rxm_field("op", "uint8", "Operation", base.DEC, RXM_OPS)
rxm_field("op_data", "uint8", "op_data")
rxm_field("flags", "uint32", "Flags", base.HEX)
rxm_field("size", "uint64", "Bytes of the message")
rxm_field("data", "uint64", "CQ data", base.HEX)
rxm_field("tag", "uint64", "Tag", base.HEX)
rxm_field("amo.datatype", "uint8", "Datatype", base.DEC, DATATYPES)
rxm_field("amo.op", "uint8", "Atomic", base.DEC, AMO_OPS)
rxm_field("amo.ioc_count", "uint8", "Remote buffers")
rxm_field("iov.addr", "uint64", "Address", base.HEX)
rxm_field("iov.len", "uint64", "Length, or elements")
rxm_field("iov.key", "uint64", "Key", base.HEX)
rxm_field("iov.count", "uint8", "Buffers in use")
rxm_field("status", "uint32", "Status (FI_E*)")
rxm_field("len", "uint32", "Bytes of the result")
rxm_field("payload", "bytes", "Payload")
rxm_field("cm.version", "uint8", "Version")
rxm_field("cm.endian", "uint8", "Byte order", base.DEC, { [1] = "big", [2] = "little" })
rxm_field("cm.ctrl_version", "uint8", "Version of the control header")
rxm_field("cm.op_version", "uint8", "Version of the operation")
rxm_field("cm.port", "uint16", "Port of the sender's listener")
rxm_field("cm.flow_ctrl", "uint8", "Flow control")
rxm_field("cm.slot", "uint8", "Slot")
rxm_field("cm.eager_limit", "uint32", "Bytes in a packet")
rxm_field("cm.rx_size", "uint32", "Packet buffers, and extensions", base.HEX)
rxm_field("cm.conn_id", "uint64", "Connection", base.HEX)
rxm_field("cm.ext", "uint8", "Extensions", base.HEX)
rxm_field("cm.eager_kb", "uint16", "KiB in a packet")
rxm_field("cm.reason", "uint8", "Reason", base.DEC, { [0] = "unspecified", [1] = "refused", [2] = "already connected" })
rxm.fields = r

---- streams ----

local tcp_stream = Field.new("tcp.stream")
local streams = {}

function weft.init()
	streams = {}
end

-- The state of the stream of this packet, and that of its sender.
local function state_of(pinfo)
	local number = tcp_stream().value
	local stream = streams[number]

	if not stream then
		stream = { ends = {} }
		streams[number] = stream
	end
	local name = tostring(pinfo.src) .. " " .. pinfo.src_port
	stream.ends[name] = stream.ends[name] or { little = true }
	return stream, stream.ends[name]
end

local function is_cm(range)
	local kind, version, len = range(1, 1):uint(), range(0, 1):uint(), range(2, 2):uint()
	local data = range(24, 8)

	return version == 3 and CM_TYPES[kind] and len <= 256 and
	       (kind == 6 or data:le_uint64() == UInt64(1) or data:uint64() == UInt64(1))
end

-- True if the unit at this offset belongs to the handshake, which ends with a CONNRESP.
local function in_handshake(stream, pinfo, offset, range)
	if not stream.up and range:len() >= 32 and not is_cm(range) then
		stream.up = { 0, 0 }		-- the capture has begun later
	end
	local up = stream.up

	return not up or pinfo.number < up[1] or (pinfo.number == up[1] and offset <= up[2])
end

local function bits(value, names)
	local set = {}

	for i, name in ipairs(names) do
		if bit.band(value, bit.lshift(1, i - 1)) ~= 0 then
			table.insert(set, name)
		end
	end
	return #set > 0 and table.concat(set, " ") or "none"
end

---- handshake ----

local function add_rdm(tree, data, ext)
	tree:add(f["cm.rdm.version"], data(0, 1))
	tree:add(f["cm.rdm.features"], data(1, 1))
	tree:add(f["cm.rdm.port"], data(2, 2))
	tree:add(f["cm.rdm.pid"], data(4, 4))
	local at, left = 8, data:len() - 8

	if left >= 20 then
		tree:add(f["cm.name.family"], data(at, 2))
		tree:add(f["cm.name.port"], data(at + 2, 2))
		tree:add(f["cm.name.addr"], data(at + 4, 16))
		at, left = at + 20, left - 20
	end
	if bit.band(ext, EXT_CTX) ~= 0 and left >= 8 then
		tree:add(f["cm.rx_ctx"], data(at, 2))
		tree:add(f["cm.tx_ctx"], data(at + 2, 2))
	end
end

local function is_rxm(data)
	return data:len() == 24 and data(0, 1):uint() == 1 and data(1, 1):uint() >= 1 and data(1, 1):uint() <= 2 and
	       data(2, 1):uint() == 4 and data(3, 1):uint() == 3
end

local function add_rxm_request(tree, data)
	local add = data(1, 1):uint() == 2 and tree.add_le or tree.add

	add(tree, r["cm.version"], data(0, 1))
	add(tree, r["cm.endian"], data(1, 1))
	add(tree, r["cm.ctrl_version"], data(2, 1))
	add(tree, r["cm.op_version"], data(3, 1))
	add(tree, r["cm.port"], data(4, 2))
	add(tree, r["cm.flow_ctrl"], data(6, 1))
	add(tree, r["cm.slot"], data(7, 1))
	add(tree, r["cm.eager_limit"], data(8, 4))
	add(tree, r["cm.rx_size"], data(12, 4))
	add(tree, r["cm.conn_id"], data(16, 8))
end

local function add_rxm_answer(tree, data, kind, little)
	local add = little and tree.add_le or tree.add

	if kind == 1 and data:len() >= 16 then
		add(tree, r["cm.conn_id"], data(0, 8))
		add(tree, r["cm.rx_size"], data(8, 4))
		add(tree, r["cm.flow_ctrl"], data(12, 1))
		add(tree, r["cm.ext"], data(13, 1))
		add(tree, r["cm.eager_kb"], data(14, 2))
	elseif kind == 6 and data:len() >= 2 then
		add(tree, r["cm.version"], data(0, 1))
		add(tree, r["cm.reason"], data(1, 1))
	else
		add(tree, f["cm.data"], data)
	end
end

local function add_private(tree, data, kind, ext, stream, sender)
	if kind == 32 and data:len() == 32 then
		tree:add(f["cm.nonce"], data)
	elseif kind == 33 and data:len() == 64 then
		tree:add(f["cm.nonce"], data(0, 32))
		tree:add(f["cm.mac"], data(32, 32))
	elseif kind == 34 and data:len() == 32 then
		tree:add(f["cm.mac"], data)
	elseif kind == 0 and is_rxm(data) then
		stream.rxm = true
		add_rxm_request(tree, data)
	elseif stream.rxm then
		add_rxm_answer(tree, data, kind, sender.little)
	elseif data:len() >= 8 and kind <= 1 and bit.band(ext, EXT_MSG) == 0 and
	       (ext ~= 0 or data:len() == 8) then
		add_rdm(tree, data, ext)
	else
		tree:add(f["cm.data"], data)
	end
end

-- A whole message of the handshake.
local function add_cm(range, pinfo, tree, stream, sender, offset)
	local kind, len = range(1, 1):uint(), range(2, 2):uint()
	local ext = range(4, 2):uint() == EXT_MAGIC and range(6, 2):uint() or 0
	local name = CM_TYPES[kind] or "unknown"
	local sub = tree:add(weft, range, "libfabric tcp, handshake: " .. name)

	sub:add(f["cm.version"], range(0, 1))
	sub:add(f["cm.type"], range(1, 1))
	sub:add(f["cm.len"], range(2, 2))
	sub:add(f["cm.ext"], range(4, 4)):append_text(" (" .. bits(ext, EXTENSIONS) .. ")")
	sub:add(f["cm.incarnation"], range(8, 8))
	if kind == 6 and bit.band(ext, EXT_AUTH) ~= 0 then
		sub:add(f["cm.refusal"], range(16, 4))
	else
		sub:add(f["cm.eager_max"], range(16, 4))
	end
	sub:add(f["cm.credit"], range(20, 4))
	if kind ~= 6 then
		sender.little = range(24, 8):le_uint64() == UInt64(1)
		sub:add(f["cm.order"], range(24, 8), sender.little and "little endian" or "big endian")
	end
	if len > 0 then
		add_private(sub, range(32, len), kind, ext, stream, sender)
	end
	if kind == 1 and not stream.up then
		stream.up = { pinfo.number, offset }
	end
	if kind == 0 and bit.band(ext, EXT_WHO) ~= 0 then
		name = name .. " (question)"
	end
	return name
end

---- frames ----

-- What follows the base header, CQ data and remote buffers, by type: a list of { field, bytes }; "pad" is skipped.
local EXTRA = {
	[1] = { { "tag", 8 } },
	[5] = { { "tag", 8 }, { "len", 8 } },
	[32] = { { "ack.cnt", 4 }, { "err", 4 } },
	[33] = { { "credit", 8 } },
	[34] = { { "tag", 8 }, { "len", 8 }, { "msg_id", 4 }, { "pad", 4 } },
	[35] = { { "msg_id", 4 }, { "rx_id", 4 }, { "len", 8 } },
	[36] = { { "rx_id", 4 }, { "pad", 4 } },
	[37] = { { "err", 4 }, { "pad", 4 } },
	[38] = { { "msg_id", 4 }, { "pad", 4 } },
	[39] = { { "amo.op", 4 }, { "amo.datatype", 4 } },
	[40] = { { "err", 4 }, { "pad", 4 } },
	[41] = { { "tag", 8 } },
	[42] = { { "number", 8 }, { "err", 4 }, { "pad", 4 }, { "rma.addr", 8 }, { "rma.len", 8 }, { "rma.key", 8 } },
	[43] = { { "direct.addr", 8 }, { "direct.cookie", 16 }, { "direct.piece_size", 8 } },
	[44] = { { "err", 4 }, { "pad", 4 } },
	[45] = { { "rx_id", 4 }, { "pad", 44 } },
}
local REMOTE = { [2] = true, [4] = true, [39] = true }

local function extra_len(op)
	local len = 0

	for _, part in ipairs(EXTRA[op] or {}) do
		len = len + part[2]
	end
	return len
end

local function flags_text(flags)
	local set = {}

	for _, flag in ipairs(FLAGS) do
		if bit.band(flags, flag[1]) ~= 0 then
			table.insert(set, flag[2])
		end
	end
	local pieces = bit.rshift(flags, 12)

	if pieces > 0 then
		table.insert(set, pieces .. " pieces")
	end
	return #set > 0 and " (" .. table.concat(set, " ") .. ")" or ""
end

-- The header behind its first 16 bytes.
local function add_header(sub, add, range, op, flags, iov_cnt, hdr_size)
	local at = 16

	local function put(name, len)
		if name ~= "pad" then
			add(sub, f[name], range(at, len))
		end
		at = at + len
	end

	local want = 16 + (bit.band(flags, FLAG_CQ_DATA) ~= 0 and 8 or 0) + (REMOTE[op] and iov_cnt * 24 or 0) +
		     extra_len(op) + (bit.band(flags, FLAG_GROUP) ~= 0 and 8 or 0)
	local layer = op == 0 and bit.band(flags, FLAG_LAYER_TAG) ~= 0 and hdr_size == want + 8

	if hdr_size ~= want + (layer and 8 or 0) then
		sub:add_proto_expert_info(e.header, "the header has " .. hdr_size .. " bytes, and this type " .. want)
		return
	end
	if bit.band(flags, FLAG_CQ_DATA) ~= 0 then
		put("cq_data", 8)
	end
	if REMOTE[op] then
		for _ = 1, iov_cnt do
			put("rma.addr", 8)
			put("rma.len", 8)
			put("rma.key", 8)
		end
	end
	if layer then
		put("layer_tag", 8)
	end
	for _, part in ipairs(EXTRA[op] or {}) do
		put(part[1], part[2])
	end
	if bit.band(flags, FLAG_GROUP) ~= 0 then
		put("group", 8)
	end
end

-- The addresses of the payload of a direct frame.
local function add_pieces(sub, add, range)
	for at = 0, range:len() - 16, 16 do
		add(sub, f["piece.addr"], range(at, 8))
		add(sub, f["piece.len"], range(at + 8, 8))
	end
end

-- A whole frame.
local function add_frame(range, pinfo, tree, stream, sender)
	local add = sender.little and tree.add_le or tree.add
	local op, hdr_size = range(1, 1):uint(), range(6, 1):uint()
	local flags = sender.little and range(2, 2):le_uint() or range(2, 2):uint()
	local iov_cnt, size = range(5, 1):uint(), sender.little and range(8, 8):le_uint64() or range(8, 8):uint64()
	local name = OPS[op] or ("type " .. op)
	local is_ack = op == 0 and range(4, 1):uint() == 2 and hdr_size == 16 and range:len() == 16
	local sub

	if is_ack then
		name = "acknowledgement"
	end
	local payload = size:tonumber() - hdr_size
	local info = payload > 0 and (name .. ", " .. payload .. " bytes") or name

	sub = tree:add(weft, range, "libfabric tcp: " .. info)
	add(sub, f.version, range(0, 1))
	add(sub, f.op, range(1, 1))
	add(sub, f.flags, range(2, 2)):append_text(flags_text(flags))
	add(sub, op == 39 and f.amo_kind or f.op_data, range(4, 1))
	add(sub, f.rma_iov_cnt, range(5, 1))
	add(sub, f.hdr_size, range(6, 1))
	add(sub, f.id, range(7, 1))
	add(sub, f.size, range(8, 8))
	if not OPS[op] then
		sub:add_proto_expert_info(e.unknown)
		return info
	end
	add_header(sub, add, range, op, flags, iov_cnt, hdr_size)
	if range:len() == hdr_size then
		return info
	end
	local rest = range(hdr_size, range:len() - hdr_size)

	if bit.band(flags, FLAGS_PIECES) ~= 0 then
		add_pieces(sub, add, rest)
	else
		sub:add(f.payload, rest)
		if stream.rxm and op == 0 and rest:len() >= 64 then
			return "rxm " .. rxm_add(rest, tree, sender.little)
		end
	end
	return info
end

---- rxm ----

local function rxm_add_iov(sub, add, range, cnt)
	for i = 0, cnt - 1 do
		add(sub, r["iov.addr"], range(i * 24, 8))
		add(sub, r["iov.len"], range(i * 24 + 8, 8))
		add(sub, r["iov.key"], range(i * 24 + 16, 8))
	end
end

-- A whole packet. Returns its name.
function rxm_add(range, tree, little)
	local add = little and tree.add_le or tree.add
	local kind, op = range(1, 1):uint(), range(34, 1):uint()
	local name = RXM_TYPES[kind] or ("type " .. kind)
	local sub = tree:add(rxm, range, "libfabric rxm: " .. name)
	local at = 64

	add(sub, r.ctrl_version, range(0, 1))
	add(sub, r.type, range(1, 1))
	add(sub, r.seg_size, range(2, 2))
	add(sub, r.seg_no, range(4, 4))
	add(sub, r.conn_id, range(8, 8))
	add(sub, r.msg_id, range(16, 8))
	add(sub, r.ctrl_data, range(24, 8))
	add(sub, r.op_version, range(32, 1))
	add(sub, r.rx_index, range(33, 1))
	add(sub, r.op, range(34, 1))
	add(sub, r.op_data, range(35, 1))
	add(sub, r.flags, range(36, 4))
	add(sub, r.size, range(40, 8))
	add(sub, r.data, range(48, 8))
	if op >= 6 and op <= 8 then
		add(sub, r["amo.datatype"], range(56, 1))
		add(sub, r["amo.op"], range(57, 1))
		add(sub, r["amo.ioc_count"], range(58, 1))
	else
		add(sub, r.tag, range(56, 8))
	end
	if (kind == 2 or kind == 7) and range:len() >= at + 104 then
		local cnt = range(at + 96, 1):uint()

		rxm_add_iov(sub, add, range(at, 96), cnt <= 4 and cnt or 4)
		add(sub, r["iov.count"], range(at + 96, 1))
		at = at + 104
	elseif kind == 4 and range:len() >= at + 96 then
		local cnt = range(58, 1):uint()

		rxm_add_iov(sub, add, range(at, 96), cnt <= 4 and cnt or 4)
		at = at + 96
	elseif kind == 5 and range:len() >= at + 8 then
		sub:add(r.status, range(at, 4))
		sub:add(r.len, range(at + 4, 4))
		at = at + 8
	end
	if range:len() > at then
		sub:add(r.payload, range(at, range:len() - at))
	end
	return name
end

---- units of the stream ----

-- Bytes of the frame that begins with these 16, in the stream; nil: not valid.
local function frame_len(range, sender)
	local hdr_size = range(6, 1):uint()
	local flags = sender.little and range(2, 2):le_uint() or range(2, 2):uint()
	local size = (sender.little and range(8, 8):le_uint64() or range(8, 8):uint64()):tonumber()

	if hdr_size < 16 or size < hdr_size or size > 2 ^ 31 - 1 then
		return nil
	end
	local pieces = bit.rshift(flags, 12)

	return pieces > 0 and hdr_size + 16 * pieces or size
end

function weft.dissector(tvb, pinfo, tree)
	local stream, sender = state_of(pinfo)
	local offset, total = 0, tvb:reported_length_remaining()
	local infos = {}

	pinfo.cols.protocol = "libfabric"
	while offset < total do
		local left = total - offset
		local range = tvb(offset, left)
		local handshake = in_handshake(stream, pinfo, offset, range)
		local need, len = handshake and 32 or 16

		if left >= need then
			len = handshake and 32 + range(2, 2):uint() or frame_len(range, sender)
			if not len then
				tree:add(weft, range):add_proto_expert_info(e.size)
				break
			end
		end
		if not len or len > left then
			pinfo.desegment_offset = offset
			pinfo.desegment_len = len and len - left or DESEGMENT_ONE_MORE_SEGMENT
			break
		end
		table.insert(infos, handshake and add_cm(tvb(offset, len), pinfo, tree, stream, sender, offset) or
			     add_frame(tvb(offset, len), pinfo, tree, stream, sender))
		offset = offset + len
	end
	if #infos > 0 then
		pinfo.cols.info = table.concat(infos, "; ")
	end
	return total
end

-- A request begins the stream: it is the first thing that its sender sends, in one segment.
local function heuristic(tvb, pinfo, tree)
	if tvb:len() < 32 or not is_cm(tvb(0)) or tvb(1, 1):uint() ~= 0 or tvb:len() ~= 32 + tvb(2, 2):uint() then
		return false
	end
	pinfo.conversation = weft
	weft.dissector(tvb, pinfo, tree)
	return true
end

weft:register_heuristic("tcp", heuristic)

weft.prefs.ports = Pref.range("TCP ports", "", "Ports of listeners, for captures without the handshake", 65535)
local ports = ""

function weft.prefs_changed()
	local tcp = DissectorTable.get("tcp.port")

	if ports ~= "" then
		tcp:remove(ports, weft)
	end
	ports = weft.prefs.ports
	if ports ~= "" then
		tcp:add(ports, weft)
	end
end
